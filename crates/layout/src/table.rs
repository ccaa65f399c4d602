//! Partition tables as they are on a disk: GPT and MBR, with logical partitions.

use crate::ReadAt;
use serde::{Deserialize, Serialize};
use whichfs_units::SECTOR;

/// Kind of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// GUID partition table.
    #[default]
    Gpt,
    /// Master boot record.
    Mbr,
}

impl Kind {
    /// As it is said on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Gpt => "gpt",
            Kind::Mbr => "mbr",
        }
    }
}

/// A partition of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableEntry {
    /// From 1; logical partitions of an MBR from 5.
    pub number: usize,
    /// First byte on the disk.
    pub start: u64,
    /// Size of the partition in bytes.
    pub bytes: u64,
    /// Its type: a GUID in small letters, or two hexadecimal digits.
    pub kind: String,
    /// Its name; empty in an MBR.
    pub name: String,
    /// What `PARTUUID=` calls it.
    pub partuuid: String,
}

/// A partition table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// GPT or MBR.
    pub kind: Kind,
    /// Identifier of the disk.
    pub id: String,
    /// The partitions, by number.
    pub entries: Vec<TableEntry>,
}

/// Entries of a GPT that are looked at; more than the usual 128 is nobody's.
const GPT_MOST: u32 = 1024;
/// Logical partitions that are followed.
const LOGICAL_MOST: usize = 60;
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
const PROTECTIVE: u8 = 0xee;
/// Logical sector of the other kind of disk (4Kn).
const LARGE_SECTOR: u64 = 4096;

pub(crate) fn le16(bytes: &[u8], at: usize) -> u64 {
    let at = bytes.get(at..at + 2).and_then(|b| b.try_into().ok());
    u64::from(at.map_or(0, u16::from_le_bytes))
}

pub(crate) fn le32(bytes: &[u8], at: usize) -> u64 {
    let at = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    u64::from(at.map_or(0, u32::from_le_bytes))
}

pub(crate) fn le64(bytes: &[u8], at: usize) -> u64 {
    let at = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    at.map_or(0, u64::from_le_bytes)
}

/// The table that `read` finds on a disk with logical sectors of `unit` bytes; `None` if there is
/// none.
///
/// # Errors
/// What cannot be read, or that the table is damaged.
pub fn read_table(read: &mut ReadAt, unit: u64) -> Result<Option<Table>, String> {
    let first = read(0, SECTOR as usize)?;
    if first.len() < SECTOR as usize || first[510..512] != [0x55, 0xaa] {
        return Ok(None);
    }
    let rows: Vec<&[u8]> = first[446..510].chunks(16).collect();
    if rows.iter().any(|row| row[4] == PROTECTIVE) {
        return gpt(read, unit).map(Some);
    }
    let used = |row: &&&[u8]| row[4] != 0;
    let is_row = |row: &&[u8]| row[0] & 0x7f == 0 && le32(row, 8) > 0 && le32(row, 12) > 0;
    // A filesystem's boot sector ends with the same two bytes, and with text in between.
    if rows.iter().filter(used).count() == 0 || !rows.iter().filter(used).all(is_row) {
        return Ok(None);
    }
    mbr(read, &first, unit).map(Some)
}

/// The sector of the GPT that `read` finds, in bytes: `unit`, or the other usual one for the image
/// of a disk; `unit` if there is no GPT.
fn gpt_unit(read: &mut ReadAt, unit: u64) -> u64 {
    let mut units = [unit, SECTOR, LARGE_SECTOR].into_iter();
    let has_header = |unit: &u64| read(*unit, 8).is_ok_and(|begin| begin.as_slice() == b"EFI PART");
    units.find(has_header).unwrap_or(unit)
}

/// The header of a GPT at the byte `at`, and its entries, on a disk with sectors of `unit` bytes.
///
/// # Errors
/// It cannot be read, or what of it is damaged.
fn gpt_at(read: &mut ReadAt, at: u64, unit: u64) -> Result<(Vec<u8>, Vec<u8>), String> {
    let header = read(at, SECTOR as usize)?;
    if header.len() < 92 || &header[..8] != b"EFI PART" {
        return Err("no header".into());
    }
    let size = le32(&header, 12) as usize;
    if !(92..=SECTOR as usize).contains(&size) {
        return Err("size of the header".into());
    }
    let mut zeroed = header[..size].to_vec();
    zeroed[16..20].fill(0);
    if u64::from(crc32(&zeroed)) != le32(&header, 16) {
        return Err("checksum of the header".into());
    }
    let (count, entry) = (le32(&header, 80) as u32, le32(&header, 84) as usize);
    if count > GPT_MOST || !(128..=4096).contains(&entry) {
        return Err("number or size of the entries".into());
    }
    let place = le64(&header, 72).checked_mul(unit).ok_or("place")?;
    let rows = read(place, count as usize * entry)?;
    if u64::from(crc32(&rows)) != le32(&header, 88) {
        return Err("checksum of the entries".into());
    }
    Ok((header, rows))
}

/// What is wrong with the second copy of the GPT of a disk of `bytes` with sectors of `unit` bytes;
/// `None` if nothing is, or if there is no GPT.
pub fn backup_damage(read: &mut ReadAt, bytes: u64, unit: u64) -> Option<String> {
    let unit = gpt_unit(read, unit);
    let (first, _) = gpt_at(read, unit, unit).ok()?;
    let at = le64(&first, 32).checked_mul(unit);
    let Some(at) = at.filter(|at| at.saturating_add(unit) <= bytes) else {
        return Some("it lies behind the end of the disk".into());
    };
    match gpt_at(read, at, unit) {
        Err(what) => Some(what),
        Ok((second, _)) if second[88..92] != first[88..92] => Some("other partitions".into()),
        Ok(_) => None,
    }
}

fn gpt(read: &mut ReadAt, unit: u64) -> Result<Table, String> {
    let unit = gpt_unit(read, unit);
    let damaged = |what: &str| format!("the GPT is damaged ({what}); sfdisk --verify tells more");
    let (header, rows) = gpt_at(read, unit, unit).map_err(|what| damaged(&what))?;
    let entry = le32(&header, 84) as usize;
    let mut entries = Vec::new();
    for (index, row) in rows.chunks_exact(entry).enumerate() {
        if row[..16] == [0; 16] {
            continue;
        }
        let (first, last) = (le64(row, 32), le64(row, 40));
        let end = last.checked_add(1).filter(|_| last < u64::MAX / unit);
        let sectors = end.and_then(|end| end.checked_sub(first));
        entries.push(TableEntry {
            number: index + 1,
            start: first.saturating_mul(unit),
            bytes: sectors.ok_or_else(|| damaged("ends of a partition"))? * unit,
            kind: guid(&row[..16]),
            name: utf16(&row[56..128]),
            partuuid: guid(&row[16..32]),
        });
    }
    Ok(Table {
        kind: Kind::Gpt,
        id: guid(&header[56..72]),
        entries,
    })
}

fn mbr(read: &mut ReadAt, first: &[u8], unit: u64) -> Result<Table, String> {
    let id = format!("{:08x}", le32(first, 440));
    let mut entries = Vec::new();
    let mut extended = None;
    for (index, row) in first[446..510].chunks(16).enumerate() {
        match row[4] {
            0 => {}
            kind if EXTENDED.contains(&kind) => extended = Some(le32(row, 8)),
            _ => entries.push(mbr_entry(row, index + 1, (0, unit), &id)),
        }
    }
    let Some(base) = extended else {
        return Ok(Table {
            kind: Kind::Mbr,
            id,
            entries,
        });
    };
    let mut at = base;
    for number in 5..5 + LOGICAL_MOST {
        let sector = read(at * unit, SECTOR as usize)?;
        if sector.len() < SECTOR as usize || sector[510..512] != [0x55, 0xaa] {
            break;
        }
        if sector[450] != 0 {
            entries.push(mbr_entry(&sector[446..462], number, (at, unit), &id));
        }
        match le32(&sector, 470) {
            0 => break,
            next => at = base + next,
        }
    }
    Ok(Table {
        kind: Kind::Mbr,
        id,
        entries,
    })
}

/// The entry `number` in `row`, whose places count sectors of `unit` bytes from the sector `base`.
fn mbr_entry(row: &[u8], number: usize, (base, unit): (u64, u64), id: &str) -> TableEntry {
    TableEntry {
        number,
        start: (base + le32(row, 8)) * unit,
        bytes: le32(row, 12) * unit,
        kind: format!("{:02x}", row[4]),
        name: String::new(),
        partuuid: format!("{id}-{number:02x}"),
    }
}

/// A GUID of a GPT, whose first three parts are little-endian.
fn guid(bytes: &[u8]) -> String {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut ordered = [0; 16];
    for (to, from) in ordered.iter_mut().zip(ORDER) {
        *to = bytes[from];
    }
    guid_text(&ordered)
}

/// A UUID as it is written.
pub(crate) fn guid_text(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let units: Vec<u16> = units.take_while(|&unit| unit != 0).collect();
    String::from_utf16_lossy(&units)
}

/// The checksum of a GPT (UEFI specification: CRC-32 of ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        let mut crc = crc ^ u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ 0xedb8_8320 & (crc & 1).wrapping_neg();
        }
        crc
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(image: &[u8]) -> Result<Option<Table>, String> {
        let mut read = |at: u64, bytes: usize| {
            let at = (at as usize).min(image.len());
            let end = (at + bytes).min(image.len());
            Ok(image[at..end].to_vec())
        };
        read_table(&mut read, SECTOR)
    }

    fn row(image: &mut [u8], at: usize, kind: u8, start: u32, sectors: u32) {
        image[at + 4] = kind;
        image[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
        image[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
    }

    fn sign(image: &mut [u8], sector: usize) {
        image[sector * 512 + 510..sector * 512 + 512].copy_from_slice(&[0x55, 0xaa]);
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn an_mbr_with_logical_partitions_is_followed() {
        let mut image = vec![0; 64 * 512];
        sign(&mut image, 0);
        row(&mut image, 446, 0x0c, 8, 8);
        row(&mut image, 462, 0x05, 20, 40);
        sign(&mut image, 20);
        row(&mut image, 20 * 512 + 446, 0x83, 2, 8);
        row(&mut image, 20 * 512 + 462, 0x05, 12, 20);
        sign(&mut image, 32);
        row(&mut image, 32 * 512 + 446, 0x83, 2, 8);
        let table = of(&image).unwrap().unwrap();
        let found: Vec<(usize, u64)> = table
            .entries
            .iter()
            .map(|e| (e.number, e.start / 512))
            .collect();
        assert_eq!(found, [(1, 8), (5, 22), (6, 34)]);
    }

    #[test]
    fn an_extended_partition_that_points_at_itself_ends() {
        let mut image = vec![0; 64 * 512];
        sign(&mut image, 0);
        row(&mut image, 446, 0x05, 20, 40);
        sign(&mut image, 20);
        row(&mut image, 20 * 512 + 446, 0x83, 2, 8);
        row(&mut image, 20 * 512 + 462, 0x05, 0, 20);
        image[20 * 512 + 470] = 0;
        assert_eq!(of(&image).unwrap().unwrap().entries.len(), 1);
    }

    #[test]
    fn what_is_no_table_is_none_and_what_is_damaged_is_told() {
        assert_eq!(of(&[]).unwrap(), None);
        assert_eq!(of(&[0; 512]).unwrap(), None);
        let mut boot = vec![b'x'; 512];
        sign(&mut boot, 0);
        assert_eq!(of(&boot).unwrap(), None, "a boot sector's text");
        let mut protective = vec![0; 40 * 512];
        sign(&mut protective, 0);
        row(&mut protective, 446, 0xee, 1, 39);
        assert!(of(&protective).unwrap_err().contains("damaged"));
    }
}
