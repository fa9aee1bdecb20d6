//! What is read of a GPU or MIG device, and which of the two tells it.

use nvml_wrapper::Device;

/// Readings that may be unsupported one by one.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    Utilisation,
    Memory,
    Temperature,
    Power,
    PowerLimit,
    Energy,
    Clock,
    Throttle,
    Pcie,
    Ecc,
    Compute,
    Graphics,
    Mps,
    Usage,
    Gpm,
}

/// What calls are made on.
pub struct Handles<'n> {
    /// The whole GPU.
    pub gpu: Device<'n>,
    /// A MIG device, where one is read.
    pub part: Option<Device<'n>>,
}

impl<'n> Handles<'n> {
    /// The device that tells this column of what is read. A MIG device is as hot as its GPU,
    /// runs at its clock and is counted by it; how much of the GPU's power, energy and
    /// traffic is this part's nobody says.
    pub fn of(&self, column: Column) -> Option<&Device<'n>> {
        let Some(part) = &self.part else {
            return Some(&self.gpu);
        };
        match column {
            Column::Temperature | Column::Clock | Column::Throttle | Column::Gpm => Some(&self.gpu),
            Column::Power | Column::PowerLimit | Column::Energy | Column::Pcie => None,
            _ => Some(part),
        }
    }
}
