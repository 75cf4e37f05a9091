//! An allocator that counts while counting is on. It stands in front of the system's, which Gantry uses too.
//!
//! Counting is off but for the moments that count: shared counters cost CPU time, and what is measured must not.

#![expect(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static COUNTS: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, with counters.
#[derive(Debug)]
pub struct Counting;

#[derive(Debug, Clone, Copy)]
pub(super) struct Allocated {
    pub(super) times: u64,
    pub(super) bytes: u64,
}

/// Starts to count from zero. Without [`Counting`] as the global allocator, the counters stay there.
pub(super) fn start() {
    ALLOCATIONS.store(0, Ordering::Relaxed);
    BYTES.store(0, Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
}

pub(super) fn stop() -> Allocated {
    COUNTS.store(false, Ordering::Relaxed);
    Allocated { times: ALLOCATIONS.load(Ordering::Relaxed), bytes: BYTES.load(Ordering::Relaxed) }
}

fn count(bytes: usize) {
    if COUNTS.load(Ordering::Relaxed) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: every method hands its arguments to `System` unchanged and returns what that returns; counting neither
// allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: `block` came from `System` by one of these methods, and the caller keeps the rest of the contract.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System` by one of these methods, and the caller keeps the rest of the contract.
        unsafe { System.dealloc(block, layout) }
    }
}
