//! The clock of a trial: which time counts.

use crate::board::Board;
use crate::error::{Error, Outcome};
use whichfs_lab::CpuPrices;

/// A lab clock.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Device time plus the guest kernel's CPU at the board's speed.
    Cpu,
    /// Device time; CPU is free.
    Device,
}

impl Clock {
    /// Reads `--clock`: `device`, `cpu`, or `cpu:BOARD`, which names the board too.
    pub fn parse(text: &str, board: &mut String) -> Outcome<Clock> {
        match text.split_once(':') {
            None if text == "device" => Ok(Clock::Device),
            None if text == "cpu" => Ok(Clock::Cpu),
            Some(("cpu", name)) if !name.is_empty() => {
                *board = name.to_owned();
                Ok(Clock::Cpu)
            }
            _ => Err(Error::input(format!(
                "clock {text}: expected 'device', 'cpu' or 'cpu:BOARD', for example \
                 cpu:beaglebone-black"
            ))),
        }
    }

    /// `device` or `cpu:<board>`, as results carry it.
    pub fn name(&self, board: &Board) -> String {
        match self {
            Clock::Cpu => format!("cpu:{}", board.name),
            Clock::Device => "device".into(),
        }
    }

    /// What the guest's CPU costs.
    pub fn prices(&self, board: &Board) -> CpuPrices {
        match self {
            Clock::Cpu => board.file.cpu.prices(),
            Clock::Device => CpuPrices::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_clock_may_name_its_board() {
        let mut board = "generic-1ghz".to_owned();
        assert!(matches!(
            Clock::parse("device", &mut board).unwrap(),
            Clock::Device
        ));
        assert_eq!(board, "generic-1ghz");
        assert!(matches!(
            Clock::parse("cpu:pandora", &mut board).unwrap(),
            Clock::Cpu
        ));
        assert_eq!(board, "pandora");
        for bad in ["real", "cpu:", "", "device:x"] {
            assert!(Clock::parse(bad, &mut board).is_err(), "{bad}");
        }
    }
}
