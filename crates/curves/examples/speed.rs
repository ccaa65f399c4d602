//! t
use whichfs_card::Profile;
fn main() {
    for f in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&f).unwrap();
        let p = Profile::parse(&f, &text).unwrap();
        let t = std::time::Instant::now();
        let c = whichfs_curves::flashbench::write_curves_of(&p, 1).unwrap();
        println!("{f} {:?}", t.elapsed());
        for (n, r) in c.linear.iter().chain(&c.random) {
            print!("{n} ");
            for (b, x) in r.iter().rev() { print!("{:9.2}", *b as f64 / x * 1e3); }
            println!();
        }
    }
}
