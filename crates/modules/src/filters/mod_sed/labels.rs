//! Labels, the branches to them, and blocks.

use super::script::{Command, Script, Target};

/// Labels of a script (`SED_LABSIZE`, less Apache's own two).
const LABELS_MAX: usize = 48;

/// Bytes of a label.
const LABEL_BYTES: usize = 7;

/// Blocks within each other (`SED_DEPTH`); Apache does not check it.
const DEPTH_MAX: usize = 20;

/// What of labels and blocks is still open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    labels: Vec<Label>,
    /// The last branch without a label.
    unlabelled: Option<usize>,
    /// The steps that begin blocks.
    blocks: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Label {
    name: Vec<u8>,
    /// The step that it names.
    step: Option<usize>,
    /// Branches that precede it.
    waiting: Vec<usize>,
}

/// What is wrong with a label or a block, followed by the script's line.
pub(crate) type Wrong = &'static str;

impl Labels {
    /// Defines a label for the next step.
    pub fn define(&mut self, name: &[u8], script: &mut Script) -> Result<(), Wrong> {
        check(name)?;
        if name.is_empty() {
            // The table begins with one that has no name.
            return Err("duplicate labels: ");
        }
        let step = script.steps.len();
        if let Some(label) = self.labels.iter_mut().find(|label| label.name == name) {
            if label.step.is_some() {
                return Err("duplicate labels: ");
            }
            label.step = Some(step);
            for branch in label.waiting.drain(..) {
                lead(script, branch, Some(step));
            }
            return Ok(());
        }
        self.add(Label { name: name.to_vec(), step: Some(step), waiting: Vec::new() })
    }

    /// Where a branch leads that is the next step.
    pub fn branch(&mut self, name: &[u8], script: &mut Script) -> Result<Target, Wrong> {
        let step = script.steps.len();
        if name.is_empty() {
            // Apache leaves branches to the end linked: each leads to the one behind it.
            if let Some(before) = self.unlabelled.replace(step) {
                lead(script, before, Some(step));
            }
            return Ok(None);
        }
        check(name)?;
        if let Some(label) = self.labels.iter_mut().find(|label| label.name == name) {
            if label.step.is_none() {
                label.waiting.push(step);
            }
            return Ok(label.step);
        }
        self.add(Label { name: name.to_vec(), step: None, waiting: vec![step] })?;
        Ok(None)
    }

    fn add(&mut self, label: Label) -> Result<(), Wrong> {
        self.labels.push(label);
        if self.labels.len() > LABELS_MAX { Err("too many labels: ") } else { Ok(()) }
    }

    /// The next step begins a block.
    pub fn open(&mut self, script: &Script) -> Result<(), Wrong> {
        if self.blocks.len() >= DEPTH_MAX {
            return Err("too many {'s: ");
        }
        self.blocks.push(script.steps.len());
        Ok(())
    }

    /// The block ends before the next step; returns whether there is one.
    pub fn close(&mut self, script: &mut Script) -> bool {
        let Some(begin) = self.blocks.pop() else { return false };
        let end = script.steps.len();
        lead(script, begin, Some(end));
        true
    }

    /// Why the script can't be executed: a block or a label is missing.
    pub fn unfinished(&self) -> Option<String> {
        if !self.blocks.is_empty() {
            return Some("too many {'s".into());
        }
        let undefined = self.labels.iter().find(|label| label.step.is_none())?;
        Some(format!("undefined label: {}", String::from_utf8_lossy(&undefined.name)))
    }
}

fn check(name: &[u8]) -> Result<(), Wrong> {
    if name.len() > LABEL_BYTES { Err("label too long: ") } else { Ok(()) }
}

/// Lets a branch lead to `target`.
fn lead(script: &mut Script, branch: usize, to: Target) {
    if let Some(step) = script.steps.get_mut(branch)
        && let Command::Branch(target) | Command::Test(target) = &mut step.command
    {
        *target = to;
    }
}
