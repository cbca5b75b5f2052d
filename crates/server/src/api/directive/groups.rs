//! Rows that stand in several files.

use super::Row;
use crate::api::module::Module;

/// The number of rows in some groups.
pub const fn count_rows<M: Module>(groups: &[&[Row<M>]]) -> usize {
    let (mut group, mut total) = (0, 0);
    while group < groups.len() {
        total += groups[group].len();
        group += 1;
    }
    total
}

/// The rows of some groups in one array; `COUNT` is their [number](count_rows).
pub const fn join_rows<M: Module, const COUNT: usize>(groups: &[&[Row<M>]]) -> [Row<M>; COUNT] {
    let mut all = [groups[0][0]; COUNT];
    let (mut group, mut at) = (0, 0);
    while group < groups.len() {
        let mut index = 0;
        while index < groups[group].len() {
            all[at] = groups[group][index];
            at += 1;
            index += 1;
        }
        group += 1;
    }
    all
}
