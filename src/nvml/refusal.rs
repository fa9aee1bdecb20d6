//! What is said where NVML can't be had; whoever gives advice tells the cases apart by it.

/// No module in the kernel.
pub const NOT_LOADED: &str = "the NVIDIA driver is not loaded";
/// The driver was upgraded under a running kernel.
pub const MISMATCH: &str = "the NVIDIA driver in the kernel and its library have different versions: reboot, or reload the nvidia modules";
/// Device files that may not be opened.
pub const NO_PERMISSION: &str = "no permission to talk to the NVIDIA driver (/dev/nvidiactl)";
/// A GPU that no longer answers on the bus.
pub const LOST: &str = "a GPU has fallen off the bus";
/// No library; its name follows.
pub const NO_LIBRARY: &str = "this machine has no NVIDIA driver library";
/// A library that the loader refuses; its reason follows.
pub const UNLOADABLE: &str = "can't be loaded: ";
