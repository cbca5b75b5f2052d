//! The oldest hashes of crypt(3): DES with 25 iterations and a salt of two letters, and BSDi's with
//! longer passwords and salts, and a number of iterations in the hash.
//!
//! Source: FIPS 46-3 for the tables, crypt(5) "descrypt" and "bsdicrypt".

use super::{LETTERS, letter};

/// The number of significant letters in a password.
const PASSWORD_LIMIT: usize = 8;
/// The number of DES iterations.
const TIMES: usize = 25;

/// Initial permutation, expansion, permutation of a round, final permutation, and the two choices
/// of the key. Each entry is the number of an input bit, counted from 1.
const EXPANSION: [u8; 48] = [
    32, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9, 8, 9, 10, 11, 12, 13, 12, 13, 14, 15, 16, 17, 16, 17, 18,
    19, 20, 21, 20, 21, 22, 23, 24, 25, 24, 25, 26, 27, 28, 29, 28, 29, 30, 31, 32, 1,
];
const ROUND: [u8; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19,
    13, 30, 6, 22, 11, 4, 25,
];
const LAST: [u8; 64] = [
    40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31, 38, 6, 46, 14, 54, 22, 62, 30,
    37, 5, 45, 13, 53, 21, 61, 29, 36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27,
    34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
];
const KEY_CHOICE_1: [u8; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60,
    52, 44, 36, 63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29,
    21, 13, 5, 28, 20, 12, 4,
];
const KEY_CHOICE_2: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41, 52,
    31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];
/// The rotation of the key's halves before each round.
const TURNS: [u32; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];

/// The substitutions, row by row.
const BOXES: [[u8; 64]; 8] = [
    [
        14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7, 0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12,
        11, 9, 5, 3, 8, 4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0, 15, 12, 8, 2, 4, 9,
        1, 7, 5, 11, 3, 14, 10, 0, 6, 13,
    ],
    [
        15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10, 3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1,
        10, 6, 9, 11, 5, 0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15, 13, 8, 10, 1, 3, 15,
        4, 2, 11, 6, 7, 12, 0, 5, 14, 9,
    ],
    [
        10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8, 13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5,
        14, 12, 11, 15, 1, 13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7, 1, 10, 13, 0, 6,
        9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12,
    ],
    [
        7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15, 13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2,
        12, 1, 10, 14, 9, 10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4, 3, 15, 0, 6, 10, 1,
        13, 8, 9, 4, 5, 11, 12, 7, 2, 14,
    ],
    [
        2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9, 14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15,
        10, 3, 9, 8, 6, 4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14, 11, 8, 12, 7, 1, 14,
        2, 13, 6, 15, 0, 9, 10, 4, 5, 3,
    ],
    [
        12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11, 10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13,
        14, 0, 11, 3, 8, 9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6, 4, 3, 2, 12, 9, 5,
        15, 10, 11, 14, 1, 7, 6, 0, 8, 13,
    ],
    [
        4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1, 13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5,
        12, 2, 15, 8, 6, 1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2, 6, 11, 13, 8, 1, 4,
        10, 7, 9, 5, 0, 15, 14, 2, 3, 12,
    ],
    [
        13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7, 1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6,
        11, 0, 14, 9, 2, 7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8, 2, 1, 14, 7, 4, 10,
        8, 13, 15, 12, 9, 0, 3, 5, 6, 11,
    ],
];

/// Hashes the first letters of `password` with the salt of `kept`; `None` if `kept` is not a hash
/// of this kind.
pub(super) fn hash(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let value = |byte: &u8| LETTERS.iter().position(|known| known == byte);
    let (first, second) = (kept.first()?, kept.get(1)?);
    let salt = value(first)? | value(second)? << 6;
    let block = encrypt(0, &keys(packed(password)), salt, TIMES);
    let mut out = vec![*first, *second];
    write(block, &mut out);
    Some(out)
}

/// Likewise for BSDi's: `_`, four letters of iterations, four of salt.
pub(super) fn hash_bsdi(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let settings = kept.get(..9)?;
    let number = |letters: &[u8]| {
        letters.iter().rev().try_fold(0usize, |number, byte| {
            let value = LETTERS.iter().position(|known| known == byte)?;
            Some(number << 6 | value)
        })
    };
    let (times, salt) = (number(settings.get(1..5)?)?, number(settings.get(5..9)?)?);
    if times == 0 {
        return None;
    }
    let mut parts = password.chunks(PASSWORD_LIMIT);
    let mut key = packed(parts.next().unwrap_or_default());
    for part in parts {
        key = encrypt(key, &keys(key), 0, 1) ^ packed(part);
    }
    let mut out = settings.to_vec();
    write(encrypt(0, &keys(key), salt, times), &mut out);
    Some(out)
}

/// Encrypts a block repeatedly. Between iterations the final and the initial permutation cancel
/// out.
fn encrypt(block: u64, keys: &[u64; 16], salt: usize, times: usize) -> u64 {
    let block = permute_back(block, &LAST);
    let (mut left, mut right) = ((block >> 32) as u32, block as u32);
    for _ in 0..times {
        for key in keys {
            (left, right) = (right, left ^ round(right, *key, salt));
        }
        (left, right) = (right, left);
    }
    permute(u64::from(left) << 32 | u64::from(right), 64, &LAST)
}

fn write(block: u64, out: &mut Vec<u8>) {
    out.extend((0..10).map(|place| letter(block >> (58 - 6 * place))));
    out.push(letter(block << 2));
}

/// Packs eight letters of a password into a key.
fn packed(part: &[u8]) -> u64 {
    (0..PASSWORD_LIMIT)
        .fold(0, |key, place| key << 8 | u64::from(part.get(place).copied().unwrap_or(0) << 1))
}

/// The keys of the sixteen rounds.
fn keys(key: u64) -> [u64; 16] {
    let chosen = permute(key, 64, &KEY_CHOICE_1);
    let (mut left, mut right) = (chosen >> 28, chosen & 0x0fff_ffff);
    let turn = |half: u64, by: u32| (half << by | half >> (28 - by)) & 0x0fff_ffff;
    TURNS.map(|by| {
        (left, right) = (turn(left, by), turn(right, by));
        permute(left << 28 | right, 56, &KEY_CHOICE_2)
    })
}

/// The function of a round. The salt swaps bits between the halves of the expanded block.
fn round(half: u32, key: u64, salt: usize) -> u32 {
    let mut wide = permute(u64::from(half), 32, &EXPANSION);
    for bit in (0..24).filter(|bit| salt >> bit & 1 != 0) {
        let (high, low) = (47 - bit, 23 - bit);
        let differ = (wide >> high ^ wide >> low) & 1;
        wide ^= differ << high | differ << low;
    }
    wide ^= key;
    let mut out = 0u64;
    for (place, table) in BOXES.iter().enumerate() {
        let six = (wide >> (42 - 6 * place) & 63) as usize;
        let row = six >> 4 & 2 | six & 1;
        let column = six >> 1 & 15;
        out = out << 4 | u64::from(table.get(row * 16 + column).copied().unwrap_or(0));
    }
    permute(out, 32, &ROUND) as u32
}

/// Inverts a permutation of 64 bits.
fn permute_back(input: u64, table: &[u8; 64]) -> u64 {
    table
        .iter()
        .enumerate()
        .fold(0, |out, (place, from)| out | (input >> (63 - place) & 1) << (64 - u32::from(*from)))
}

/// Selects bits of `input`, which has `width` of them.
fn permute(input: u64, width: u32, table: &[u8]) -> u64 {
    table.iter().fold(0, |out, from| out << 1 | input >> (width - u32::from(*from)) & 1)
}
