//! Whether a probe of the card would settle the verdict, in a sentence.

use crate::number::duration;
use whichfs_decide::Settling;
use whichfs_units::Bytes;

/// On how many cards that this one may be the answer is right, and what a probe would change.
pub(crate) fn sentence(settling: &Settling) -> String {
    let name = &settling.answer;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let begin = format!(
        "{name} is the best or ties on about {} of the cards that this one may be ({} tried)",
        percent(settling.now),
        settling.tried
    );
    if settling.measurements.is_empty() {
        return format!("{begin}, as far as its probe tells.");
    }
    let Some(one) = settling.advised() else {
        return format!("{begin}, and a probe would hardly change that.");
    };
    let (option, written) = match one.price.written_bytes {
        0 => ("", String::new()),
        bytes => (
            " --write",
            format!(", {} written and put back", Bytes(bytes)),
        ),
    };
    format!(
        "{begin}; what is chosen after `whichfs probe{option}` ({}{written}), on {}.",
        duration(one.price.seconds),
        percent(one.right)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_decide::{MeasurementPrice, Settled};

    fn told(now: f64, right: &[f64]) -> String {
        let prices = [(2.4, 0), (22.4, 254 << 20)].into_iter();
        let measurements = prices
            .zip(right)
            .map(|((s, bytes), right)| (s, bytes, *right));
        let settled = |(seconds, written_bytes, right)| Settled {
            right,
            price: MeasurementPrice {
                seconds,
                written_bytes,
            },
        };
        sentence(&Settling {
            cards: 32,
            tried: 3,
            answer: "ext4".to_owned(),
            now,
            measurements: measurements.map(settled).collect(),
        })
    }

    #[test]
    fn the_cheapest_probe_that_settles_is_told_with_its_price() {
        let both = told(0.59, &[0.93, 0.97]);
        assert!(both.contains("about 59 % of the cards"), "{both}");
        assert!(both.contains("`whichfs probe` (2.40 s), on 93 %"), "{both}");
        let writes = told(0.59, &[0.6, 0.83]);
        let price = "`whichfs probe --write` (22.4 s, 254 MiB written and put back), on 83 %";
        assert!(writes.contains(price), "{writes}");
    }

    #[test]
    fn no_probe_is_advised_where_none_helps_or_none_is_needed() {
        let none = told(0.59, &[0.6, 0.62]);
        assert!(
            none.ends_with("and a probe would hardly change that."),
            "{none}"
        );
        let settled = told(0.95, &[0.95, 1.0]);
        assert!(settled.contains("hardly change"), "{settled}");
        let probed = told(0.59, &[]);
        assert!(probed.ends_with(", as far as its probe tells."), "{probed}");
    }
}
