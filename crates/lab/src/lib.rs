//! The lab: calendar, vhost-user disk and life cycle of a guest in virtual time.
