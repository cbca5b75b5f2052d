//! The CPUs that receive the packets of a network device: those that its receive queues interrupt,
//! or those over which the kernel distributes packets in software (RPS).

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use super::cpu_set::CpuSet;
use super::cpus::Roots;
use super::plan::{Plan, Unit};
use crate::settings::ListenAddress;

/// Devices examined at most.
const DEVICES_MAX: usize = 64;

/// The CPU of each loop, in the loops' order, if the plan binds each loop to its own.
pub(crate) fn cpu_each(plan: &Plan) -> Option<Vec<usize>> {
    if plan.unit != Unit::Loop || plan.loops < 2 || plan.places.len() != plan.loops {
        return None;
    }
    let alone = |cpus: &CpuSet| cpus.first().filter(|_| cpus.len() == 1);
    let cpus: Vec<usize> =
        plan.places.iter().map(|place| alone(&place.cpus)).collect::<Option<_>>()?;
    let distinct: CpuSet = cpus.iter().copied().collect();
    (distinct.len() == cpus.len()).then_some(cpus)
}

/// Whether connections to `address` arrive by devices whose receive queues are spread over all of
/// `cpus`. Never true for the machine's connections to itself, which arrive on their sender's CPU.
pub(crate) fn are_spread(roots: &Roots, address: ListenAddress, cpus: &[usize]) -> bool {
    let devices = devices(address);
    !devices.is_empty() && devices.iter().all(|device| is_spread(roots, device, cpus))
}

fn is_spread(roots: &Roots, device: &str, cpus: &[usize]) -> bool {
    let device = roots.net.join(device);
    let queues = names(&device.join("queues")).filter(|name| name.starts_with("rx-"));
    let queues: Vec<String> = queues.collect();
    let in_software = queues.iter().map(|queue| {
        let mask = fs::read_to_string(device.join("queues").join(queue).join("rps_cpus"));
        CpuSet::from_kernel_mask(&mask.unwrap_or_default())
    });
    let mut receivers: CpuSet =
        in_software.flat_map(|set| set.iter().collect::<Vec<_>>()).collect();
    if receivers.is_empty() {
        if queues.len() < cpus.len() {
            return false;
        }
        receivers = interrupted(roots, &device);
    }
    cpus.iter().all(|cpu| receivers.contains(*cpu))
}

/// The CPUs that a device interrupts. A virtual device's interrupts are those of its bus device.
fn interrupted(roots: &Roots, device: &Path) -> CpuSet {
    let folders = [device.join("device/msi_irqs"), device.join("device/../msi_irqs")];
    let numbers = folders.iter().flat_map(|folder| names(folder));
    let cpus = numbers.flat_map(|number| {
        let folder = roots.proc.join("irq").join(number);
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let list = read("effective_affinity_list").filter(|list| !list.trim().is_empty());
        let list = list.or_else(|| read("smp_affinity_list")).unwrap_or_default();
        CpuSet::from_kernel(&list).iter().collect::<Vec<_>>()
    });
    cpus.collect()
}

/// The names of the devices with an address; all except the loopback for a wildcard address.
fn devices(address: ListenAddress) -> Vec<String> {
    let wanted = match address {
        ListenAddress::Socket(address) if !address.ip().is_unspecified() => Some(address.ip()),
        _ => None,
    };
    let Ok(all) = getifaddrs() else { return Vec::new() };
    let mut names = Vec::new();
    for one in all.take(DEVICES_MAX) {
        let flags = one.flags;
        let is_outside =
            flags.contains(InterfaceFlags::IFF_UP) && !flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let Some(ip) = one.address.as_ref().and_then(ip_of).filter(|_| is_outside) else {
            continue;
        };
        if wanted.is_none_or(|wanted| wanted == ip) && !names.contains(&one.interface_name) {
            names.push(one.interface_name);
        }
    }
    names
}

fn ip_of(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    four.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::affinity::tests::Tree;
    use crate::affinity::{Cpus, Setting, Topology};
    use crate::shape::Shape;

    fn plan(tree: &Tree, shape: Shape) -> Plan {
        let cpus = Cpus { allowed: CpuSet::from_kernel("0-1"), quota_thousandths: None };
        Plan::new(&Topology::read(&tree.roots()), &cpus, shape, &Setting::Auto)
    }

    #[test]
    fn a_plan_with_a_cpu_for_each_loop_has_them_in_order() {
        let tree = Tree::new("queues-plan", &[]);
        tree.machine(2, |cpu| (cpu, 0, 0, 1024));
        let event = |loops| Shape::Event { processes: 1, loops };
        assert_eq!(cpu_each(&plan(&tree, event(2))), Some(vec![0, 1]));
        assert_eq!(cpu_each(&plan(&tree, event(1))), None);
        assert_eq!(cpu_each(&plan(&tree, event(3))), None);
        assert_eq!(cpu_each(&plan(&tree, Shape::Prefork { processes: 2 })), None);
    }

    #[test]
    fn queues_interrupt_cpus() {
        let tree = Tree::new("queues-irq", &[]);
        for queue in 0..2 {
            tree.write(&format!("net/eth0/queues/rx-{queue}/rps_cpus"), "00000000,00000000\n");
            tree.write(&format!("net/eth0/device/msi_irqs/{}", 40 + queue), "msix\n");
        }
        tree.write("proc/irq/40/effective_affinity_list", "0\n");
        tree.write("proc/irq/41/smp_affinity_list", "1\n");
        assert!(is_spread(&tree.roots(), "eth0", &[0, 1]));
        // A loop whose CPU receives nothing would get no connections.
        assert!(!is_spread(&tree.roots(), "eth0", &[0, 2]));
        assert!(!is_spread(&tree.roots(), "eth0", &[0, 1, 1]));
        tree.write("proc/irq/41/smp_affinity_list", "0\n");
        assert!(!is_spread(&tree.roots(), "eth0", &[0, 1]));
        assert!(!is_spread(&tree.roots(), "eth1", &[0, 1]));
    }

    #[test]
    fn one_queue_spreads_in_software() {
        let tree = Tree::new("queues-rps", &[("net/eth0/queues/rx-0/rps_cpus", "1,00000003\n")]);
        assert!(is_spread(&tree.roots(), "eth0", &[0, 1, 32]));
        assert!(!is_spread(&tree.roots(), "eth0", &[0, 2]));
    }

    #[test]
    fn the_machine_itself_is_on_no_device() {
        let loopback = ListenAddress::Socket(SocketAddr::from(([127, 0, 0, 1], 80)));
        assert!(devices(loopback).is_empty());
        assert!(!are_spread(&Roots::default(), loopback, &[0]));
    }
}
