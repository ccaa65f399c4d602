//! Consent to overwrite a device, as the command line gets it: `--destroy ID`, or typed when asked.

use crate::failure::{Failure, Outcome};
use std::io::{BufRead, IsTerminal};
use whichfs_engine::consent::{Consent, ConsentRequest};
use whichfs_units::Bytes;

/// What the command line says of the device that is to be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLineConsent<'a> {
    /// The values of `--destroy`.
    pub destroy: &'a [String],
    /// Whether the answer is a JSON document, in which case nobody is asked.
    pub json: bool,
}

impl Consent for CommandLineConsent<'_> {
    fn given(&self, request: &ConsentRequest<'_>) -> Outcome<Option<String>> {
        let asks = self.destroy.is_empty() && !self.json && std::io::stdin().is_terminal();
        match asks {
            true => typed(request),
            false => {
                let named = self.destroy.iter().find(|id| *id == request.id);
                Ok(named.or(self.destroy.first()).cloned())
            }
        }
    }
}

/// The ID that a person types; `None` if the line is empty.
///
/// # Errors
/// The terminal is closed.
fn typed(request: &ConsentRequest<'_>) -> Outcome<Option<String>> {
    let ConsentRequest { shown, id, .. } = request;
    let holds = match request.contents {
        None => String::new(),
        Some([]) => " and holds no filesystem that is known".to_owned(),
        Some(found) => format!(" and holds {}", found.join(" and ")),
    };
    let size = Bytes(request.bytes);
    alert!("{shown} has {size}{holds}. All of it will be lost.");
    alert!("Type what it is called to go on: {id}");
    let mut typed = String::new();
    let read = std::io::stdin().lock().read_line(&mut typed);
    read.map_err(|error| Failure::input(format!("nothing was typed: {error}")))?;
    let typed = typed.trim();
    Ok((!typed.is_empty()).then(|| typed.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_consent_where_nobody_is_asked() {
        let request = ConsentRequest {
            shown: "/dev/mmcblk0",
            bytes: 1 << 30,
            contents: Some(&[]),
            id: "SD-1234",
        };
        for (destroy, expected) in [
            (&[][..], None),
            (&["SD-1234"], Some("SD-1234")),
            // The guard judges it, not the command line.
            (&["SD-9999"], Some("SD-9999")),
            (&["SD-9999", "SD-1234"], Some("SD-1234")),
        ] {
            let destroy: Vec<String> = destroy.iter().map(|id| (*id).to_owned()).collect();
            let consent = CommandLineConsent {
                destroy: &destroy,
                json: true,
            };
            let given = consent.given(&request).ok().flatten();
            assert_eq!(given.as_deref(), expected);
        }
    }
}
