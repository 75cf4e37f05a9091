//! The store through its public face, on real files.

#[cfg(test)]
mod approval_joins;
#[cfg(test)]
mod approval_lists;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod grants;
#[cfg(test)]
mod group;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod list;
#[cfg(test)]
mod open;
#[cfg(test)]
mod orphans;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod upgrade;
#[cfg(test)]
mod wal;
