pub const EXAMPLES: &str = "";
pub fn run(_args: &crate::cli::FitArgs) -> crate::failure::Outcome<u8> { Ok(0) }
