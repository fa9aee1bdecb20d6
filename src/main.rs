//! The program: everything it does starts in `cli`.

fn main() -> std::process::ExitCode {
    gpuwatch::cli::main()
}
