//! The system calls that no jailed program gets: those that change mounts, look into other processes, have a history of
//! vulnerabilities, or take memory that is not counted.
//!
//! A filter cannot see arguments behind a pointer. Where a program has another way to the same effect, such a call does
//! not exist in the jail: `clone3` and `openat2`.

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use std::collections::BTreeMap;
use std::io;

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Always refused as not permitted.
const FORBIDDEN: &[c_long] = &[
    // Mounts, and other namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_lookup_dcookie,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Large parts of the kernel that programs hardly need.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    // Memory that belongs to no process, in any amount.
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
    libc::SYS_memfd_secret,
    // Pages that a pipe holds when their process has unmapped them.
    libc::SYS_vmsplice,
];

/// Refused as if the kernel did not have it: programs know another way.
const UNKNOWN: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    // The whole machine shares one limit for it.
    libc::SYS_io_setup,
    // Rules take memory that is not counted.
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

/// Flags of `clone` for new namespaces.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests that fake input of a terminal, or change what it is: TIOCSTI, TIOCLINUX and TIOCSETD.
const TERMINAL_REQUESTS: [u64; 3] = [0x5412, 0x541c, 0x5423];

/// Kinds of requests to file systems, of which some take space that is not counted: of XFS, which others have taken over,
/// and of btrfs. The kind is the second byte of a request.
const SPACE_REQUESTS: [u64; 2] = [0x5800, 0x9400];
const KIND_OF_REQUEST: u64 = 0xff00;

/// Those of them that only share what is there: FICLONE, FICLONERANGE and FIDEDUPERANGE.
const SHARING_REQUESTS: [u64; 3] = [0x4004_9409, 0x4020_940d, 0xc018_9436];

/// Memory that lives on when no process has it mapped, or none has touched it for a while.
const SHARED_MEMORY: u64 = (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as u64;

/// Harmless personalities: the default, 32 bits, an old version number, and the query.
const PERSONALITIES: [u64; 5] = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// Makes holes in a file; all other uses of `fallocate` take space that is not counted.
const PUNCH_HOLE: u64 = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as u64;

/// Applies the filter to this process and all that it will start.
pub(super) fn apply(memory_is_bounded: bool) -> io::Result<()> {
    for program in programs(memory_is_bounded)? {
        seccompiler::apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

/// One program per error number, because each has only one. The kernel takes the strictest answer.
fn programs(memory_is_bounded: bool) -> io::Result<Vec<BpfProgram>> {
    let mut unknown: Rules = UNKNOWN.iter().map(|number| (*number, Vec::new())).collect();
    if !memory_is_bounded {
        unknown.insert(libc::SYS_memfd_create, Vec::new());
    }
    let unsupported = Rules::from([(libc::SYS_fallocate, vec![all([not(1, PUNCH_HOLE)?])?])]);
    let unfit = Rules::from([(libc::SYS_ioctl, space_requests()?)]);
    // A process that hides cannot be counted, so this has no effect. Programs expect it to succeed.
    let unneeded = Rules::from([(libc::SYS_prctl, vec![all([is(0, SET_DUMPABLE)?])?])]);
    let mut programs = vec![without_x32(compile(forbidden(memory_is_bounded)?, libc::EPERM)?)];
    for (rules, errno) in [
        (unknown, libc::ENOSYS),
        (unsupported, libc::EOPNOTSUPP),
        (unfit, libc::ENOTTY),
        (unneeded, NO_ERROR),
    ] {
        programs.push(compile(rules, errno)?);
    }
    Ok(programs)
}

/// The answer of a call that has no effect.
const NO_ERROR: i32 = 0;

/// Decides whether other processes of the same user may look into this one.
const SET_DUMPABLE: u64 = libc::PR_SET_DUMPABLE as u64;

fn space_requests() -> io::Result<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for kind in SPACE_REQUESTS {
        let mut conditions = vec![condition(1, SeccompCmpOp::MaskedEq(KIND_OF_REQUEST), kind)?];
        for request in SHARING_REQUESTS {
            conditions.push(not(1, request)?);
        }
        rules.push(all(conditions)?);
    }
    Ok(rules)
}

fn compile(rules: Rules, errno: i32) -> io::Result<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let answer = SeccompAction::Errno(errno.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, arch).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

/// On x86-64 a second set of numbers (x32) leads to the same calls. The rules do not know it, so it is refused.
fn without_x32(program: BpfProgram) -> BpfProgram {
    if !cfg!(target_arch = "x86_64") {
        return program;
    }
    let instruction = |code: u32, jf: u8, k: u32| sock_filter { code: code as u16, jt: 0, jf, k };
    let mut whole = vec![
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, 0x4000_0000),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
    ];
    whole.extend(program);
    whole
}

fn forbidden(memory_is_bounded: bool) -> io::Result<Rules> {
    let mut rules: Rules = FORBIDDEN.iter().map(|number| (*number, Vec::new())).collect();
    let mut namespaces = Vec::new();
    for flag in NEW_NAMESPACES {
        namespaces.push(all([has(0, u64::from(flag.cast_unsigned()))?])?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    let mut requests = Vec::new();
    for request in TERMINAL_REQUESTS {
        requests.push(all([is(1, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, requests);
    let families @ [local, ..] =
        [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6].map(|family| u64::from(family.cast_unsigned()));
    rules.insert(libc::SYS_socket, vec![none_of(0, &families)?]);
    rules.insert(libc::SYS_socketpair, vec![none_of(0, &[local])?]);
    rules.insert(libc::SYS_personality, vec![none_of(0, &PERSONALITIES)?]);
    // Memory that is reserved for others, and that no process shows.
    let mut mappings = vec![all([has(3, u64::from(libc::MAP_HUGETLB.cast_unsigned()))?])?];
    if !memory_is_bounded {
        mappings.push(all([has(3, SHARED_MEMORY)?])?);
    }
    rules.insert(libc::SYS_mmap, mappings);
    // The first process, which has the same user, must keep its limits and its priority.
    rules.insert(libc::SYS_prlimit64, vec![all([not(0, 0)?])?]);
    for number in [libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr] {
        rules.insert(number, vec![all([is(0, 1)?])?]);
    }
    rules.insert(libc::SYS_sched_setaffinity, vec![all([is(0, 1)?])?]);
    for (number, one_process) in PRIORITIES {
        // All processes of a user, or of a group, can be more than the job's own.
        rules.insert(number, vec![all([not(0, one_process)?])?, all([is(1, 1)?])?]);
    }
    for (number, mode) in MODES {
        rules.insert(*number, owners_rights(*mode, &[])?);
    }
    for (number, flags, mode) in OPENS {
        let mut refused = Vec::new();
        // The mode means something only if a file is made.
        for makes in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
            refused.extend(owners_rights(*mode, &[has(*flags, u64::from(makes.cast_unsigned()))?])?);
        }
        rules.insert(*number, refused);
    }
    Ok(rules)
}

/// Calls that set a priority, and the first argument by which they set that of one process.
const PRIORITIES: [(c_long, u64); 2] =
    [(libc::SYS_setpriority, libc::PRIO_PROCESS as u64), (libc::SYS_ioprio_set, 1)];

/// Calls with the mode of a file, and at which place.
const MODES: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (SYS_FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// The same number everywhere.
const SYS_FCHMODAT2: c_long = 452;

/// Calls that may make a file, and where its flags and its mode are.
const OPENS: &[(c_long, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// Rules against modes that let others execute a file with the rights of its owner or group.
fn owners_rights(mode: u8, also: &[SeccompCondition]) -> io::Result<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for bit in [libc::S_ISUID, libc::S_ISGID] {
        let mut conditions = also.to_vec();
        conditions.push(has(mode, u64::from(bit))?);
        rules.push(all(conditions)?);
    }
    Ok(rules)
}

fn all(conditions: impl Into<Vec<SeccompCondition>>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions.into()).map_err(io::Error::other)
}

fn none_of(place: u8, values: &[u64]) -> io::Result<SeccompRule> {
    let conditions: io::Result<Vec<_>> = values.iter().map(|value| not(place, *value)).collect();
    all(conditions?)
}

fn is(place: u8, value: u64) -> io::Result<SeccompCondition> {
    condition(place, SeccompCmpOp::Eq, value)
}

fn not(place: u8, value: u64) -> io::Result<SeccompCondition> {
    condition(place, SeccompCmpOp::Ne, value)
}

fn has(place: u8, bit: u64) -> io::Result<SeccompCondition> {
    condition(place, SeccompCmpOp::MaskedEq(bit), bit)
}

/// All these arguments have 32 bits for the kernel, which looks at no others.
fn condition(place: u8, comparison: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(place, SeccompCmpArgLen::Dword, comparison, value).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_set_of_numbers_is_refused_before_any_rule() {
        let programs = programs(false).expect("it can be made");
        let codes: Vec<(u16, u32)> = programs[0].iter().take(3).map(|step| (step.code, step.k)).collect();
        if cfg!(target_arch = "x86_64") {
            // Load the number; if it is at least this much, go on; answer that there is no such call.
            assert_eq!(codes, [(0x20, 0), (0x35, 0x4000_0000), (0x06, 0x0005_0000 | 38)]);
        }
    }

    #[test]
    fn shared_memory_and_memory_files_are_refused_only_where_they_are_not_counted() {
        let counted = programs(true).expect("it can be made");
        let uncounted = programs(false).expect("it can be made");
        assert!(counted[0].len() < uncounted[0].len());
        assert!(counted[1].len() < uncounted[1].len());
    }
}
