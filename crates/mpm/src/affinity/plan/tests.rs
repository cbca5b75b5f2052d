use proptest::prelude::*;

use super::*;

/// A machine of `caches` caches of `cores` cores of `threads` threads, numbered as Linux does on
/// x86: first one thread of every core, then the second ones.
fn machine(caches: usize, cores: usize, threads: usize) -> Topology {
    let all = caches * cores;
    let cpu = |number: usize| {
        let core = number % all;
        let cache = core / cores * cores;
        Cpu { number, core, cache, node: core / cores, capacity: 1024 }
    };
    Topology { cpus: (0..all * threads).map(cpu).collect() }
}

fn within(allowed: &str) -> Cpus {
    Cpus { allowed: CpuSet::from_kernel(allowed), quota_thousandths: None }
}

fn event(processes: usize, loops: usize) -> Shape {
    Shape::Event { processes, loops }
}

/// The masks of all loops, in order.
fn masks(plan: &Plan) -> String {
    let all: Vec<String> = plan.places.iter().map(|place| place.cpus.to_string()).collect();
    all.join(" ")
}

fn auto(topology: &Topology, cpus: &Cpus, shape: Shape) -> Plan {
    Plan::new(topology, cpus, shape, &Setting::Auto)
}

#[test]
fn cores_come_first_and_neighbours_share_a_cache() {
    let machine = machine(2, 2, 2);
    let two = auto(&machine, &within("0-7"), event(2, 2));
    assert_eq!((masks(&two).as_str(), two.rule), ("0 1", Rule::Cores));
    let four = auto(&machine, &within("0-7"), event(2, 4));
    assert_eq!((masks(&four).as_str(), four.rule), ("0 1 2 3", Rule::Cores));
    // Two of six are second threads: those of the first cache.
    let six = auto(&machine, &within("0-7"), event(2, 6));
    assert_eq!((masks(&six).as_str(), six.rule), ("0 4 1 5 2 3", Rule::Threads));
    // The first process has one cache to itself, the second the other.
    let all = auto(&machine, &within("0-7"), event(2, 8));
    assert_eq!(masks(&all), "0 4 1 5 2 6 3 7");
    assert_eq!(all.place(1, 4).unwrap().cache, 2);
}

#[test]
fn a_narrower_mask_is_kept_to() {
    let machine = machine(2, 2, 2);
    // 4 is a second thread, but its core's only allowed one.
    let plan = auto(&machine, &within("4,6,7"), event(1, 3));
    assert_eq!((masks(&plan).as_str(), plan.rule), ("4 6 7", Rule::Cores));
    let plan = auto(&machine, &within("5"), event(1, 1));
    assert_eq!((plan.places.len(), plan.rule), (0, Rule::OneCpu));
    assert_eq!(plan.place(0, 0), None);
}

#[test]
fn more_loops_than_cpus_share_caches() {
    let plan = auto(&machine(2, 2, 1), &within("0-3"), event(2, 6));
    assert_eq!((masks(&plan).as_str(), plan.rule), ("0-1 0-1 0-1 2-3 2-3 2-3", Rule::Caches));
    let plan = auto(&machine(1, 2, 1), &within("0-1"), event(2, 6));
    assert_eq!((plan.places.len(), plan.rule), (0, Rule::OneCache));
    // As many loops as requested, although not each gets a CPU.
    let plan = Plan::new(&machine(1, 2, 1), &within("0-1"), event(2, 3), &Setting::Thread);
    assert_eq!(masks(&plan), "0 1");
    assert_eq!(plan.place(1, 2).unwrap().cpus.to_string(), "0");
}

#[test]
fn under_a_quota_no_loop_is_pinned() {
    let machine = machine(2, 2, 1);
    let quota = |thousandths| Cpus { quota_thousandths: Some(thousandths), ..within("0-3") };
    for setting in [Setting::Auto, Setting::Core, Setting::Thread] {
        let plan = Plan::new(&machine, &quota(3900), event(1, 4), &setting);
        assert_eq!((plan.places.len(), plan.rule), (0, Rule::Quota));
    }
    let list = Setting::List(CpuSet::from_kernel("0-1"));
    let plan = Plan::new(&machine, &quota(1000), event(1, 2), &list);
    assert_eq!((masks(&plan).as_str(), plan.rule), ("0-1", Rule::Listed));
    let plan = Plan::new(&machine, &quota(1000), event(1, 2), &Setting::Llc);
    assert_eq!(masks(&plan), "0-1 2-3");
    // A quota that covers all CPUs has no effect.
    let plan = Plan::new(&machine, &quota(4000), event(1, 4), &Setting::Auto);
    assert_eq!(masks(&plan), "0 1 2 3");
}

#[test]
fn settings_say_how_much_each_gets() {
    let machine = machine(2, 2, 2);
    let plan = |setting| Plan::new(&machine, &within("0-7"), event(2, 4), &setting);
    assert_eq!(masks(&plan(Setting::Core)), "0,4 1,5 2,6 3,7");
    assert_eq!(masks(&plan(Setting::Llc)), "0-1,4-5 0-1,4-5 2-3,6-7 2-3,6-7");
    // 5 is the second thread of 1's core, and there is no loop left for it.
    assert_eq!(masks(&plan(Setting::List(CpuSet::from_kernel("1,4-7,9")))), "4 1 6 7");
    assert_eq!(plan(Setting::List(CpuSet::from_kernel("8-9"))).rule, Rule::NoneListed);
    assert_eq!(plan(Setting::Off).rule, Rule::Off);
    // More loops than cores: the cores are reused.
    let many = Plan::new(&machine, &within("0-7"), event(2, 6), &Setting::Core);
    assert_eq!(many.place(1, 4).unwrap().cpus.to_string(), "0,4");
}

#[test]
fn processes_go_to_cpus_slot_by_slot() {
    let machine = machine(2, 2, 2);
    let prefork = Shape::Prefork { processes: 3 };
    let plan = Plan::new(&machine, &within("0-7"), prefork, &Setting::Thread);
    // Alternating between caches, and second threads after all cores.
    assert_eq!(masks(&plan), "0 2 1 3 4 6 5 7");
    assert_eq!(plan.place(9, 9).unwrap().cpus.to_string(), "2");
    let worker = Shape::Worker { processes: 2, threads: 25 };
    let plan = Plan::new(&machine, &within("0-7"), worker, &Setting::Core);
    assert_eq!(masks(&plan), "0,4 2,6 1,5 3,7");
    // By default a process is bound to a cache: its next connection may find a single CPU busy
    // while others are idle.
    let plan = auto(&machine, &within("0-7"), prefork);
    assert_eq!(plan.place(0, 0).unwrap().cpus.to_string(), "0-1,4-5");
    assert_eq!(plan.place(1, 1).unwrap().cpus.to_string(), "2-3,6-7");
}

#[test]
fn fast_cores_come_before_slow_ones_but_not_before_every_core() {
    // Four slow cores, numbered first, and two fast ones with two threads.
    let cpu =
        |number: usize, core: usize, capacity| Cpu { number, core, cache: 0, node: 0, capacity };
    let mut cpus: Vec<Cpu> = (0..4).map(|number| cpu(number, number, 446)).collect();
    cpus.extend([cpu(4, 4, 1024), cpu(5, 4, 1024), cpu(6, 6, 1024), cpu(7, 6, 1024)]);
    let machine = Topology { cpus };
    assert_eq!(masks(&auto(&machine, &within("0-7"), event(1, 2))), "4 6");
    assert_eq!(masks(&auto(&machine, &within("0-7"), event(1, 4))), "0 1 4 6");
    assert_eq!(masks(&auto(&machine, &within("0-7"), event(1, 7))), "0 1 2 3 4 5 6");
}

#[test]
fn loops_follow_cores_lists_and_quotas() {
    let machine = machine(2, 2, 2);
    let wanted = |cpus: &Cpus, setting: Setting| Plan::loops_wanted(&machine, cpus, &setting);
    assert_eq!(wanted(&within("0-7"), Setting::Auto), 8);
    assert_eq!(wanted(&within("0-7"), Setting::Off), 8);
    assert_eq!(wanted(&within("0-7"), Setting::Core), 4);
    assert_eq!(wanted(&within("0-4"), Setting::Core), 4);
    assert_eq!(wanted(&within("0-7"), Setting::List(CpuSet::from_kernel("2-3,99"))), 2);
    assert_eq!(wanted(&within("0-7"), Setting::List(CpuSet::from_kernel("99"))), 8);
    let quota = Cpus { quota_thousandths: Some(2500), ..within("0-7") };
    assert_eq!(wanted(&quota, Setting::Auto), 3);
    // The topology is unknown.
    let nothing = Topology::default();
    assert_eq!(Plan::loops_wanted(&nothing, &within("0-2"), &Setting::Core), 3);
    assert_eq!(masks(&auto(&nothing, &within("0-2"), event(1, 3))), "0 1 2");
}

fn settings() -> impl Strategy<Value = Setting> {
    prop_oneof![
        Just(Setting::Auto),
        Just(Setting::Core),
        Just(Setting::Thread),
        Just(Setting::Llc),
        proptest::collection::btree_set(0..40usize, 1..20)
            .prop_map(|cpus| Setting::List(cpus.into_iter().collect())),
    ]
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        (1..4usize, 1..40usize).prop_map(|(processes, loops)| event(processes.min(loops), loops)),
        (1..20usize, 1..9usize)
            .prop_map(|(processes, threads)| Shape::Worker { processes, threads }),
        (1..60usize).prop_map(|processes| Shape::Prefork { processes }),
        Just(Shape::Loop),
    ]
}

proptest! {
    #[test]
    fn every_plan_keeps_the_promises(
        (caches, cores, threads) in (1..4usize, 1..5usize, 1..3usize),
        allowed in proptest::collection::btree_set(0..24usize, 1..24),
        quota in proptest::option::of(500..30_000u64),
        shape in shapes(),
        setting in settings(),
    ) {
        let machine = machine(caches, cores, threads);
        let allowed: CpuSet = allowed.into_iter().collect();
        let cpus = Cpus { allowed: allowed.and(&machine.online()), quota_thousandths: quota };
        prop_assume!(!cpus.allowed.is_empty());
        let plan = Plan::new(&machine, &cpus, shape, &setting);
        prop_assert_eq!(&plan, &Plan::new(&machine, &cpus, shape, &setting));
        for place in &plan.places {
            prop_assert!(!place.cpus.is_empty() && place.cpus.is_within(&cpus.allowed));
            if let Setting::List(list) = &setting {
                prop_assert!(place.cpus.is_within(list));
            }
            if cpus.quota_binds() && plan.places.len() > 1 {
                prop_assert_eq!(plan.rule, Rule::Caches);
            }
        }
        // No CPU is shared while another is free.
        let is_alone = matches!(plan.rule, Rule::Cores | Rule::Threads);
        if is_alone && setting == Setting::Auto && plan.unit == Unit::Loop {
            let used: CpuSet = plan.places.iter().flat_map(|place| place.cpus.iter()).collect();
            prop_assert_eq!(used.len(), plan.places.len());
            // No second thread is used while a core is free.
            let core = |cpu: usize| machine.cpu(cpu).core;
            let cores: CpuSet = used.iter().map(core).collect();
            let all: CpuSet = cpus.allowed.iter().map(core).collect();
            prop_assert!(cores.len() == used.len() || cores == all);
        }
    }
}
