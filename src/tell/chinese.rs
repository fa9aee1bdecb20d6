//! Findings in Chinese: what each is called beside its name, and what helps.
//!
//! Owns the wording alone. Where advice names something of the run (a PID, a GPU), there is none
//! here, and the judge's own is shown.

/// What a finding is called, in a few characters.
pub fn gloss(finding: &str) -> Option<&'static str> {
    Some(match finding {
        "starting" => "启动中",
        "preparing" => "数据准备中",
        "checkpointing" => "保存检查点",
        "evaluating" => "评估中",
        "stalled" => "训练停滞",
        "no-visible-progress" => "看不到进度",
        "waiting-for-input" => "等待输入",
        "suspended" => "已挂起",
        "idle-interactive" => "交互会话空闲",
        "idle-serving" => "服务空闲",
        "gpu-unused" => "未使用 GPU",
        "idle-holding" => "占用 GPU 却空闲",
        "orphans" => "残留进程",
        "defunct" => "僵尸进程",
        "unexplained-memory" => "显存去向不明",
        "data-starved" => "GPU 等数据",
        "cpu-bound" => "CPU 是瓶颈",
        "low-use" => "GPU 利用率低",
        "small-batch" => "批次过小",
        "memory-bound" => "显存带宽是瓶颈",
        "memory-leak" => "内存泄漏",
        "near-oom" => "内存即将耗尽",
        "oom" => "显存不足",
        "host-oom" => "主机内存不足",
        "nan" => "损失变为 NaN",
        "program-fault" => "程序访问显存出错",
        "hardware" => "GPU 硬件故障",
        "restarted" => "已重新启动",
        "xid-info" => "驱动提示",
        "throttled" => "GPU 降频",
        "overheating" => "GPU 过热",
        "imbalanced" => "负载不均",
        "slow-step" => "步速变慢",
        "behind" => "赶不上时限",
        _ => return None,
    })
}

/// What helps, by a finding and its cause.
pub fn advice(finding: &str, cause: Option<&str>) -> Option<&'static str> {
    Some(match (finding, cause) {
        ("stalled", Some("spin")) => {
            "GPU 忙但功耗很低，多半卡在集合通信或某个内核里：查看各 rank 的调用栈，找出没有进入同一操作的那个 rank（可设 NCCL_DEBUG=INFO），再从最近的检查点重启。"
        }
        ("stalled", Some("remote")) => "本机各 rank 都在等另一台机器：先到那台机器上查。",
        ("stalled", Some("asleep")) => {
            "所有进程都睡在锁、管道或 poll 上：查看调用栈（py-spy dump --pid PID）。常见原因是 DataLoader 的 worker 已经退出，或 fork 时仍持有锁；设 num_workers=0 或改用 spawn 启动方式即可验证。"
        }
        ("stalled", Some("storage")) => {
            "进程在等存储，却没有数据到达：先检查文件系统（df、dmesg、NFS 服务器），再考虑重启。"
        }
        ("stalled", Some("lost-rank")) => {
            "有一个 rank 已经退出，其余 rank 在等它：它最后几行输出说明了原因。所有 rank 都要重启，torchrun --max-restarts 可以自动完成。"
        }
        ("idle-holding", _) => "这个作业占着显存却什么也不做：不再需要就结束它，把 GPU 让给别人。",
        ("gpu-unused", Some("cpu-build")) => {
            "装的是 CPU 版框架：换成支持 GPU 的版本（例如 pip install 'tensorflow[and-cuda]'，或带 CUDA 的 PyTorch）。"
        }
        ("data-starved", _) => {
            "GPU 在等数据：增加 DataLoader 的 num_workers，打开 pin_memory 和 prefetch，把数据放到本地磁盘或预先解码、缓存。"
        }
        ("small-batch", _) => {
            "显存大半空着，GPU 也不忙：增大 batch_size（学习率随之调整），或让两个这样的作业共用一张卡。"
        }
        ("low-use", _) => {
            "GPU 利用率偏低（70 % 以上算正常）：试试更大的批次、混合精度、编译后的训练步（torch.compile、jit_compile=True、jax.jit），并减少同步。"
        }
        ("oom", _) => {
            "减小批次并配合梯度累积，或使用 bf16、激活重计算；若 reserved 远大于 allocated，设 PYTORCH_ALLOC_CONF=expandable_segments:True。"
        }
        ("near-oom", Some("gpu")) => {
            "请立即保存检查点；减小批次、使用混合精度或激活重计算可以腾出显存。"
        }
        ("nan", _) => {
            "损失已不是有效数值：降低学习率，加梯度裁剪，检查输入里有没有 NaN，并从出问题之前的检查点继续。"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::FINDINGS;

    #[test]
    fn every_finding_has_a_chinese_name() {
        for name in FINDINGS {
            let name = name.replace('_', "-");
            assert!(gloss(&name).is_some(), "{name}");
        }
        assert_eq!(gloss("my-rule"), None);
    }
}
