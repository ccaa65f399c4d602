//! Where guests find programs, and which those are: the sealed userland, or this machine.

use super::LabExecutor;
use crate::error::{Error, Outcome};
use crate::prepare_error::PrepareError;
use crate::tools::{PATH, find};
use crate::trial_recipe::missing_tools;
use crate::{program, visible};
use std::collections::BTreeMap;
use whichfs_fs::Recipe;
use whichfs_lab::{HostView, Root};
use whichfs_workload::Program;

impl LabExecutor {
    /// Where programs of guests come from; of this machine where they must see it.
    pub(super) fn root(&self, sees_host: bool) -> Root<'_> {
        let sealed = self.userland.as_ref().filter(|_| !sees_host);
        sealed.map_or(Root::Host(&self.view), Root::Sealed)
    }

    /// What guests see of this machine that have no sealed userland.
    pub fn view(&self) -> &HostView {
        &self.view
    }

    /// Whether guests find the program `name`: in the sealed userland, or on this machine.
    pub fn has(&self, name: &str) -> bool {
        self.has_in(name, self.userland.is_none())
    }

    fn has_in(&self, name: &str, on_host: bool) -> bool {
        match self.userland.as_ref().filter(|_| !on_host) {
            Some(userland) => userland.has(name, PATH),
            None => find(name).is_some(),
        }
    }

    /// Checks that guests find the tools of `recipe`.
    pub(super) fn require_tools(
        &self,
        candidate: &whichfs_fs::Candidate,
        recipe: &Recipe,
        on_host: bool,
    ) -> Result<(), PrepareError> {
        let tools = recipe.tools.iter().copied();
        let missing: Vec<&str> = tools.filter(|tool| !self.has_in(tool, on_host)).collect();
        match on_host || missing.is_empty() {
            true => missing_tools(candidate, &missing, None),
            false => Err(PrepareError::Excluded {
                why: not_in_userland(&missing.join(", ")),
                source: None,
            }),
        }
    }

    /// Checks that guests find `programs`, and those of this machine the files that they name.
    pub(super) fn require_programs(&self, programs: &[Program], on_host: bool) -> Outcome {
        for program in programs {
            let name = program.argv.first().map_or("", String::as_str);
            if on_host {
                program::require(program)?;
                visible::check(&program.argv, &self.view)?;
            } else if !self.has(name) {
                return Err(Error::environment(not_in_userland(name)));
            }
        }
        Ok(())
    }

    /// SHA-256 of the sealed userland, if guests have one.
    pub fn userland_sha256(&self) -> Option<String> {
        Some(self.userland.as_ref()?.sha256.clone())
    }

    /// Versions of the tools of this machine that `recipe` runs; none where guests run those of the
    /// sealed userland, whose digest says it.
    pub fn tool_versions(&self, recipe: &Recipe) -> BTreeMap<String, String> {
        match self.userland {
            Some(_) => BTreeMap::new(),
            None => self.host_versions(recipe, &[]),
        }
    }

    /// Versions of what of this machine decides what `recipe` and `programs` do.
    pub(super) fn host_versions(
        &self,
        recipe: &Recipe,
        programs: &[Program],
    ) -> BTreeMap<String, String> {
        let tools = recipe.tools.iter().copied();
        let parts: Vec<&str> = tools.chain(program::parts(programs)).collect();
        self.versions.lock().of(&parts)
    }
}

/// Why the sealed userland does not serve, and the remedy.
pub fn not_in_userland(names: &str) -> String {
    format!("{names} is not in the sealed userland: update whichfs, or userland/build --force")
}
