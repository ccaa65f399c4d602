//! A board in a labgrid lab: `labgrid-client` acquires its place, tells its address, and switches
//! its card and its power.

use crate::error::{Error, ErrorKind, Outcome};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whichfs_remote::{Address, is_host};
use whichfs_units::printable;

/// The client of labgrid, which finds its coordinator by itself (`LG_COORDINATOR`).
const CLIENT: &str = "labgrid-client";
/// Acquires the place `$1`, prints its name, and releases it when standard input closes. That
/// happens however the process at the other end ends, also by SIGKILL.
const HOLD: &str = "trap '' HUP INT TERM
said=$(labgrid-client -p \"$1\" acquire) || exit
name=${said##*acquired place }
printf '%s\\n' \"$name\"
read -r _
exec labgrid-client -p \"$name\" release >/dev/null";
/// Longest quotation of the client's message in an error, in characters.
const SAID_CHARS: usize = 400;

/// A place that this process holds; it is released when this is dropped, and when the process ends
/// in any way.
#[derive(Debug)]
pub struct LabgridPlace {
    name: String,
    resources: Resources,
    /// Releases the place when its standard input closes.
    holder: Child,
}

/// What of the resources of a place is used.
#[derive(Debug, Default, PartialEq, Eq)]
struct Resources {
    /// User, host and port of each ssh server.
    services: Vec<Service>,
    /// Whether something switches the power.
    power: bool,
    /// Whether a multiplexer moves the card between the board and the exporter's host.
    sd_mux: bool,
    /// Whether there is a serial console.
    console: bool,
}

/// `NetworkService` of labgrid.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Service {
    address: String,
    username: Option<String>,
    port: Option<u16>,
}

/// What `labgrid-client env` prints: the resources of each target, each by its class.
#[derive(Deserialize)]
struct Environment {
    targets: BTreeMap<String, Target>,
}

#[derive(Deserialize)]
struct Target {
    resources: Vec<BTreeMap<String, serde_norway::Value>>,
}

impl Resources {
    /// Reads the output of `labgrid-client env`.
    fn of(text: &str) -> Result<Resources, serde_norway::Error> {
        let found: Environment = serde_norway::from_str(text)?;
        let mut resources = Resources::default();
        let all = found.targets.into_values().flat_map(|one| one.resources);
        for (class, value) in all.flatten() {
            if class == "NetworkService" {
                resources.services.push(serde_norway::from_value(value)?);
            }
            resources.power |= class.contains("Power");
            resources.sd_mux |= class.contains("SDMux") || class.contains("SDWire");
            resources.console |= class == "NetworkSerialPort";
        }
        Ok(resources)
    }
}

impl LabgridPlace {
    /// Acquires the place that `pattern` names: its whole name, or `+` and the token of a
    /// reservation (`+` alone: the one in `LG_TOKEN`).
    ///
    /// # Errors
    /// There is no client or coordinator, no such place, or somebody holds it.
    pub fn acquire(pattern: &str) -> Outcome<LabgridPlace> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", HOLD, "whichfs-labgrid", pattern])
            // Signals of a terminal are for this process, whose end the holder outlives.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut holder = command
            .spawn()
            .map_err(|error| Error::environment(format!("/bin/sh cannot be started: {error}")))?;
        let mut name = String::new();
        if let Some(out) = holder.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut name);
        }
        let name = name.trim().to_owned();
        if name.is_empty() {
            let said = ended(&mut holder);
            return Err(refused(pattern, "acquire", &said));
        }
        // From here on every error releases the place.
        let mut place = LabgridPlace {
            name,
            resources: Resources::default(),
            holder,
        };
        if place.name != pattern && !pattern.starts_with('+') {
            return Err(Error::input(format!(
                "labgrid:{pattern}: the lab takes that for the place {0}; write its whole name: \
                 labgrid:{0}/dev/…",
                place.name
            )));
        }
        let text = client(&place.name, &["env"])?;
        place.resources = Resources::of(&text).map_err(|error| {
            Error::environment(format!(
                "labgrid place {}: `{CLIENT} env` prints what is not understood: {error}; is that \
                 labgrid 23 or later?",
                place.name
            ))
        })?;
        Ok(place)
    }

    /// Name of the place.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device at `path` of the board, by the place's only `NetworkService`, else by its serial
    /// console.
    ///
    /// # Errors
    /// The place has neither, or several services, or its address is no host.
    pub fn address(&self, path: &str) -> Outcome<Address> {
        let name = &self.name;
        let service = match &self.resources.services[..] {
            [service] => service,
            [] if self.resources.console => {
                return Ok(Address {
                    host: name.clone(),
                    port: None,
                    path: path.to_owned(),
                    place: Some(name.clone()),
                    console: true,
                });
            }
            other => {
                return Err(Error::input(format!(
                    "labgrid place {name} has {} resources of the class NetworkService, and one is \
                     needed (its address is where ssh connects), or none and a NetworkSerialPort; \
                     change the exporter's file, or what the place matches (labgrid-client -p \
                     {name} add-match)",
                    other.len()
                )));
            }
        };
        let host = match &service.username {
            Some(user) if !user.is_empty() => format!("{user}@{}", service.address),
            _ => service.address.clone(),
        };
        if !is_host(&host) {
            return Err(Error::input(format!(
                "labgrid place {name}: the address {host:?} of its NetworkService is no host; \
                 correct it in the exporter's file"
            )));
        }
        Ok(Address {
            host,
            port: service.port,
            path: path.to_owned(),
            place: Some(name.clone()),
            console: false,
        })
    }

    /// Gives the board its card and switches it on, where something of the place can; false if
    /// nothing can switch it on.
    ///
    /// # Errors
    /// A driver fails.
    pub fn switch_on(&self) -> Outcome<bool> {
        // A multiplexer that is switched takes the card away for a moment, also from where it is.
        if self.resources.sd_mux {
            let mode = client(&self.name, &["sd-mux", "get"])?;
            if mode.lines().last().map(str::trim) != Some("dut") {
                client(&self.name, &["sd-mux", "dut"])?;
            }
        }
        if self.resources.power {
            client(&self.name, &["power", "on"])?;
        }
        Ok(self.resources.power)
    }

    /// Checks that the place is still held here.
    ///
    /// # Errors
    /// Somebody released it, its exporter is gone, or the coordinator is.
    pub fn require_held(&self) -> Outcome {
        client(&self.name, &["env"]).map(drop)
    }

    /// Releases the place.
    fn release(&mut self) -> Result<(), String> {
        drop(self.holder.stdin.take());
        let said = ended(&mut self.holder);
        match self.holder.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(said),
        }
    }
}

impl Drop for LabgridPlace {
    fn drop(&mut self) {
        if let Err(said) = self.release() {
            let name = &self.name;
            log::warn!(
                "labgrid place {name} was not released ({}); {CLIENT} -p {name} show tells who \
                 holds it, {CLIENT} -p {name} release releases it",
                short(&said)
            );
        }
    }
}

/// Takes the power of the board at the place `name` for `off`, and gives it again.
///
/// # Errors
/// The driver fails, or the place is not held here.
pub fn cycle_power(name: &str, off: Duration) -> Outcome {
    let seconds = off.as_secs_f64().to_string();
    client(name, &["power", "cycle", "-t", &seconds]).map(drop)
}

/// Time that `labgrid-client` takes to ask the power driver of the place `name` something.
///
/// # Errors
/// The place has no power driver, or it fails.
pub fn power_latency(name: &str) -> Outcome<Duration> {
    let begun = Instant::now();
    client(name, &["power", "get"])?;
    Ok(begun.elapsed())
}

/// Runs the client with `arguments` for the place `name`; what it printed.
fn client(name: &str, arguments: &[&str]) -> Outcome<String> {
    let output = Command::new(CLIENT)
        .args(["-p", name])
        .args(arguments)
        // A Ctrl-C between off and on would leave the board without power.
        .process_group(0)
        .stdin(Stdio::null())
        .output();
    let said = match output {
        Ok(output) if output.status.success() => {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("{CLIENT}: not found ({error})"),
    };
    Err(refused(name, &arguments.join(" "), &said))
}

/// What `child` says on standard error until it ends.
fn ended(child: &mut Child) -> String {
    let mut said = String::new();
    if let Some(mut from) = child.stderr.take() {
        let _ = from.read_to_string(&mut said);
    }
    let _ = child.wait();
    said
}

/// The end of what the client said, on one line.
fn short(said: &str) -> String {
    let words = said.replace("labgrid-client: ", "").replace("Error: ", "");
    let one: Vec<&str> = words.split_whitespace().collect();
    let one = printable(&one.join(" "));
    let skipped = one.chars().count().saturating_sub(SAID_CHARS);
    one.chars().skip(skipped).collect()
}

/// The error of the client, which `said` so about `what` with the place `name`, with its remedy.
fn refused(name: &str, what: &str, said: &str) -> Error {
    let told = short(said);
    let has = |words: &str| said.contains(words);
    let remedy = match () {
        () if has("not found") => "install labgrid (pip install labgrid) and put its directory \
                                   bin into PATH"
            .to_owned(),
        () if has("connect to coordinator") || has("coordinator is unavailable") => {
            "name a coordinator that runs, HOST:PORT in LG_COORDINATOR".to_owned()
        }
        () if has("You have already acquired") => {
            format!("another whichfs of yours may use it; if none does: {CLIENT} -p {name} release")
        }
        () if has("already acquired") || has("reserved") => format!(
            "ask who holds it, or wait for it: {CLIENT} reserve --wait name={name}, then the same \
             command"
        ),
        () if has("matches nothing") && name.starts_with('+') => format!(
            "LG_TOKEN is not set, or the reservation has ended (labgrid drops it a minute after \
             its last use): {CLIENT} reserve --wait --shell name=PLACE prints a new LG_TOKEN"
        ),
        () if has("matches nothing") => format!("{CLIENT} places lists the lab's places"),
        () if has("no compatible resource") => format!(
            "the place needs a power port (NetworkPowerPort, …): {CLIENT} -p {name} show lists \
             what it has"
        ),
        () if has("is not acquired") => {
            format!("somebody released it meanwhile; {CLIENT} -p {name} show tells who has it now")
        }
        () if has("orphaned") || has("Match") || has("match") => {
            format!("its exporter is away: {CLIENT} -p {name} show lists what is there")
        }
        () => format!("try it by hand: {CLIENT} -p {name} {what}"),
    };
    let message = format!("labgrid place {name}: {what} failed: {told}; {remedy}");
    Error::new(ErrorKind::Environment, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What labgrid 26 prints.
    const ENV: &str = "targets:\n  rpi4-2:\n    resources:\n    - NetworkPowerPort:\n        \
                       index: 1\n        model: rest\n        host: http://pdu/relay/{index}\n    \
                       - NetworkService:\n        username: root\n        address: 10.0.0.7\n";

    fn place(text: &str) -> LabgridPlace {
        LabgridPlace {
            name: "rpi4-2".to_owned(),
            resources: Resources::of(text).unwrap(),
            holder: Command::new("true").spawn().unwrap(),
        }
    }

    #[test]
    fn the_address_is_that_of_the_only_network_service() {
        let board = place(ENV);
        assert!(board.resources.power && !board.resources.sd_mux);
        let address = board.address("/dev/sda").unwrap();
        assert_eq!(address.host, "root@10.0.0.7");
        assert_eq!(address.to_string(), "labgrid:rpi4-2/dev/sda");
        let with_port = ENV.replace("10.0.0.7", "10.0.0.7\n        port: 2222");
        assert_eq!(place(&with_port).address("/x").unwrap().port, Some(2222));
        let none = place("targets: {a: {resources: []}}");
        assert!(!none.resources.power);
        let error = none.address("/dev/sda").unwrap_err();
        assert!(error.message.contains("add-match"), "{error}");
        let serial = "targets: {a: {resources: [{NetworkSerialPort: {port: 1}}, {SDMux: {}}]}}";
        let console = place(serial).address("/dev/sda").unwrap();
        assert!(console.console && console.to_string() == "labgrid:rpi4-2/dev/sda");
        assert!(place(serial).resources.sd_mux);
        let error = place(&ENV.replace("10.0.0.7", "'a; reboot'")).address("/x");
        assert!(error.unwrap_err().message.contains("no host"));
        assert!(Resources::of("acquired place A").is_err());
    }

    #[test]
    fn every_refusal_of_the_client_has_its_remedy() {
        for (said, remedy) in [
            ("sh: 2: labgrid-client: not found", "pip install labgrid"),
            (
                "Server error: Error: Could not connect to coordinator",
                "LG_COORDINATOR",
            ),
            (
                "labgrid-client: Error: You have already acquired place A.",
                "A release",
            ),
            (
                "Place A is already acquired by lab7/ada. To work",
                "reserve --wait name=A",
            ),
            (
                "Error: place pattern A matches nothing",
                "labgrid-client places",
            ),
            (
                "Error: target has no compatible resource available",
                "NetworkPowerPort",
            ),
            ("Error: place A is not acquired", "A show"),
            ("something else", "by hand: labgrid-client -p A acquire"),
        ] {
            let error = refused("A", "acquire", said);
            assert!(error.remedy().contains(remedy), "{said}: {error}");
            assert_eq!(error.kind, ErrorKind::Environment);
        }
        let error = refused("A", "acquire", "Place A is already acquired by lab7/ada.");
        assert!(error.message.contains("lab7/ada"), "{error}");
        let error = refused("+", "acquire", "reservation token K7 matches nothing");
        assert!(error.remedy().contains("LG_TOKEN"), "{error}");
    }
}
