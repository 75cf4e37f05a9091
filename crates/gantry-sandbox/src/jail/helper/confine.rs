//! The rights and limits of the program, besides what it can see.

use crate::jail::error::{JailError, Step};
use crate::jail::probe::Backend;
use crate::jail::protocol::JobSpec;
use crate::jail::{Access, HOME, Job, WORKSPACE};
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};
use std::io;
use std::path::Path;

const DESCRIPTORS: u64 = 1024;

/// Bytes that cannot be swapped out, of each process.
const LOCKED: u64 = 64 << 10;

/// Bytes of address space of each process: a back-stop only, because programs reserve much more than they use.
const ADDRESS_SPACE: u64 = 64 << 30;

/// Not zero: a system that hands core dumps to a program ignores zero as a limit, but not one.
const NO_DUMP: u64 = 1;

/// The newest rules that are used; an older kernel applies those that it has.
const RULES: ABI = ABI::V6;

/// Sets the limits that the kernel enforces. Each is at most what this process has.
pub(super) fn limit(spec: &JobSpec) -> io::Result<()> {
    let limits = &spec.job.limits;
    // Processes of the jail's user that are none of the job's: the first process, and the helper if it is another one.
    let own_processes = match spec.backend {
        Backend::Native => 2,
        Backend::Bubblewrap => 1,
    };
    let seconds = limits.cpu.as_secs().max(1);
    lower(Resource::Cpu, seconds, seconds + 1)?;
    for (resource, most) in [
        (Resource::Fsize, limits.written),
        (Resource::Nproc, u64::from(limits.processes) + own_processes),
        (Resource::As, ADDRESS_SPACE.max(limits.memory.saturating_mul(4))),
        (Resource::Nofile, DESCRIPTORS),
        (Resource::Memlock, LOCKED),
        (Resource::Core, NO_DUMP),
    ] {
        lower(resource, most, most)?;
    }
    Ok(())
}

fn lower(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
    Ok(setrlimit(resource, limit)?)
}

/// Gives up every capability for good, also those that executing a file could bring.
pub(super) fn give_up_capabilities() -> io::Result<()> {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(one) {
            Ok(true) => remove_capability_from_bounding_set(one)?,
            Ok(false) => {}
            // There are no more.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    match set_capabilities_secure_bits(bits) {
        // A process that has no capability to set them has none to lose either.
        Ok(()) | Err(Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    clear_ambient_capability_set()?;
    set_capabilities(None, sets(CapabilitySet::empty()))?;
    set_no_new_privs(true)?;
    Ok(())
}

pub(super) fn keep_capabilities(set: CapabilitySet) -> io::Result<()> {
    Ok(set_capabilities(None, sets(set))?)
}

fn sets(set: CapabilitySet) -> CapabilitySets {
    CapabilitySets { effective: set, permitted: set, inheritable: CapabilitySet::empty() }
}

/// Restricts files by Landlock as well, as far as the kernel has it. Returns whether it has any of it.
pub(super) fn restrict_files(job: &Job) -> Result<bool, JailError> {
    let enforced = rules(job).and_then(RulesetCreated::restrict_self).map_err(|error| JailError::Step {
        step: Step::Confine,
        detail: format!("landlock: {error}"),
        errno: libc::EINVAL,
    })?;
    Ok(enforced.ruleset != RulesetStatus::NotEnforced)
}

fn rules(job: &Job) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::from_read(RULES);
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?;
    let mut rules = allow(rules, "/", read)?;
    let stores = job.stores.iter().map(|store| (&*store.at, store.access));
    let folders = stores.chain([(Path::new(WORKSPACE), job.access)]);
    let writable = folders.filter(|(_, access)| *access == Access::Write).map(|(path, _)| path);
    for path in writable.chain(["/tmp", "/dev/shm", HOME].map(Path::new)) {
        rules = allow(rules, path, AccessFs::from_all(RULES))?;
    }
    for path in ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"] {
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate;
        rules = allow(rules, path, device)?;
    }
    Ok(rules)
}

/// A path that is not in this jail needs no rule.
fn allow(
    rules: RulesetCreated,
    path: impl AsRef<Path>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(descriptor) => rules.add_rule(PathBeneath::new(descriptor, access)),
        Err(_) => Ok(rules),
    }
}
