//! `CPUAffinity` and `CPUAffinityAdapt`, as values.

use std::fmt;

use super::cpu_set::CpuSet;

/// The configured affinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// `CPUAffinity`
    pub setting: Setting,
    /// `CPUAffinityAdapt`
    pub adapt: bool,
}

impl Default for Affinity {
    fn default() -> Self {
        Self { setting: Setting::Auto, adapt: true }
    }
}

impl Affinity {
    /// Nothing is pinned, sampled or steered.
    pub fn off() -> Self {
        Self { setting: Setting::Off, adapt: false }
    }
}

/// `CPUAffinity`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Setting {
    /// The kernel places everything.
    Off,
    /// A CPU per loop if there are enough, cores before their second threads; else a last-level
    /// cache each.
    #[default]
    Auto,
    /// A physical core for each loop or process, with all its threads.
    Core,
    /// One CPU (a hardware thread) for each loop or process.
    Thread,
    /// The CPUs of one last-level cache for each loop or process.
    Llc,
    /// As `Thread`, within the listed CPUs.
    List(CpuSet),
}

impl Setting {
    /// Parses the directive's argument. Errors: a sentence with the accepted values.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "off" => Self::Off,
            "auto" => Self::Auto,
            "core" => Self::Core,
            "thread" => Self::Thread,
            "llc" => Self::Llc,
            list => Self::List(CpuSet::parse(list).ok_or_else(|| {
                format!(
                    "CPUAffinity must be Off, Auto, Core, Thread, LLC or a list of CPUs such as \
                     0-3,8, not '{text}'"
                )
            })?),
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => out.write_str("Off"),
            Self::Auto => out.write_str("Auto"),
            Self::Core => out.write_str("Core"),
            Self::Thread => out.write_str("Thread"),
            Self::Llc => out.write_str("LLC"),
            Self::List(cpus) => write!(out, "{cpus}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_reads_back() {
        for text in ["Off", "Auto", "Core", "Thread", "LLC", "0-3,8"] {
            assert_eq!(Setting::parse(text).unwrap().to_string(), text);
            let shouted = text.to_uppercase();
            assert_eq!(Setting::parse(&shouted), Setting::parse(text));
        }
        assert!(Setting::parse("cores").unwrap_err().contains("not 'cores'"));
        assert!(Setting::parse("").is_err());
        assert_eq!(Affinity::default(), Affinity { setting: Setting::Auto, adapt: true });
    }
}
