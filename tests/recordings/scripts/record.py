#!/usr/bin/env python3
"""Record a training script's output as NAME.pipe.cast, NAME.pty.cast and NAME.yaml (asciicast v2).

usage: record.py scripts/NAME.py --python VENV/bin/python [--out DIR] [--only pipe|pty] [--end INT:12] [--limit 120]
       record.py scripts/NAME.py --meta          (only copy the script's own description into NAME.yaml again)
needs: pip install pyyaml pyte

The script's docstring is YAML: framework, packages (a list of distribution names; the first gives the version), style,
synthetic, outcome, shown, note, and, where needed: command (words after the interpreter; "train.py" is the script's
copy), env (a mapping), files (a list of further files beside the script to copy).
The script logs ground truth to the file that $TRUTH_LOG names: JSON lines {"t": time.time(), "event": "mid"|"epoch_end"|...,
"epoch": .., "epochs": .., "step": .., "steps": .., "loss": ..}; this is put on the cast's clock and thinned to 40 entries.

pipe: stdout ("o") and stderr ("e") through two pipes, PYTHONUNBUFFERED=1, stdin /dev/null, no TERM.
pty: one pseudo terminal of 120x40, TERM=xterm-256color.
A UTF-8 sequence split between two reads is moved whole into the later one. Machine paths and the host name are replaced.
"""
import argparse, ast, codecs, fcntl, json, os, pty, re, selectors, shutil, signal, socket, struct, subprocess, sys, tempfile
import termios, time
import pyte, yaml

WIDTH, HEIGHT = 120, 40


class Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def description(script):
    return yaml.safe_load(ast.get_docstring(ast.parse(open(script).read())))


def environment(job, python, kind, extra):
    venv = os.path.dirname(os.path.dirname(os.path.abspath(python)))
    env = {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": f"{job}/home", "USER": "user", "LOGNAME": "user",
           "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
           "HF_HUB_DISABLE_TELEMETRY": "1", "TRUTH_LOG": f"{job}/truth.jsonl"}
    for key in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if key in os.environ:
            env[key] = os.environ[key]
    if kind == "pipe":
        env["PYTHONUNBUFFERED"] = "1"
    else:
        env["TERM"] = "xterm-256color"
    env.update({k: str(v) for k, v in (extra or {}).items()})
    return env


def replacements(job, python):
    """Machine paths and what they become, longest first."""
    venv = os.path.dirname(os.path.dirname(os.path.abspath(python)))
    base = os.path.dirname(os.path.dirname(os.path.realpath(python)))
    pairs = {job: "/job", os.path.realpath(job): "/job", venv: "/opt/venv", base: "/usr/local"}
    site = f"{venv}/lib"
    for folder, _, names in os.walk(site):
        depth = folder[len(site):].count(os.sep)
        if depth > 2:
            continue
        for name in names:
            if name.endswith(".pth") and depth == 2:  # another environment that this one borrows packages from
                for line in open(os.path.join(folder, name)):
                    line = line.strip()
                    if line.startswith("/"):
                        pairs[re.sub(r"/lib/python[^/]*/site-packages/?$", "", line)] = "/opt/venv"
    home = os.path.expanduser("~")
    pairs[home] = "/job/home"
    pairs[socket.gethostname()] = "node01"
    return sorted(pairs.items(), key=lambda p: -len(p[0]))


def replace(events, pairs):
    """Replace in each stream's joined bytes; what a match becomes belongs to the read in which the match begins."""
    # A path may follow the last letter of a colour's escape sequence, so only a name is asked to begin a word.
    pattern = re.compile(b"|".join((b"" if a[0] == "/" else b"(?<![A-Za-z0-9_.-])") + re.escape(a.encode()) + b"(?![A-Za-z0-9_-])" for a, _ in pairs))
    table = {a.encode(): b.encode() for a, b in pairs}
    out = [None] * len(events)
    for stream in {e[1] for e in events}:
        index = [i for i, e in enumerate(events) if e[1] == stream]
        joined = b"".join(events[i][2] for i in index)
        cuts = [(m.start(), m.end(), table[m.group()]) for m in pattern.finditer(joined)]
        at = 0
        for i in index:
            end, piece, pos = at + len(events[i][2]), b"", at
            for a, b, new in cuts:
                if b <= pos or a >= end:
                    continue
                if a >= pos:
                    piece += joined[pos:a] + new
                pos = max(pos, min(b, end))
            out[i] = [events[i][0], stream, piece + joined[pos:end]]
            at = end
    return [e for e in out if e[2]]


def decode(events):
    """Text of each read; a sequence split between two reads goes whole into the later one."""
    for encoding in ("utf-8", "latin-1"):
        decoders, texts = {}, []
        try:
            for t, stream, data in events:
                d = decoders.setdefault(stream, codecs.getincrementaldecoder(encoding)())
                texts.append([t, stream, d.decode(data)])
            for d in decoders.values():
                d.decode(b"", True)
            return encoding, [e for e in texts if e[2]]
        except UnicodeDecodeError:
            continue


def end_of_display(text, width, lines, wrap):
    screen = pyte.Screen(width, 200)
    if wrap:
        screen.resize(HEIGHT, width)
    else:
        screen.reset_mode(7, private=True)  # no wrapping: a pipe's line has no width
        screen.set_mode(20)                 # a newline also returns
    stream = pyte.Stream(screen)
    stream.feed(text if wrap else text[-200000:])
    shown = [line.rstrip() for line in screen.display]
    return [line for line in shown if line][-lines:]


def thin(truth, most=40):
    if len(truth) <= most:
        return truth
    step = (len(truth) - 1) / (most - 1)
    return [truth[i] for i in sorted({round(k * step) for k in range(most)})]


def one_run(kind, name, script, python, meta, args):
    job = tempfile.mkdtemp(prefix="job")
    os.makedirs(f"{job}/home")
    shutil.copy(script, f"{job}/train.py")
    for extra in meta.get("files", []):
        shutil.copy(os.path.join(os.path.dirname(script), extra), job)
    words = str(meta.get("command", "python train.py")).split()
    words[0] = os.path.abspath(python) if words[0] == "python" else os.path.join(os.path.dirname(os.path.abspath(python)), words[0])
    env = environment(job, python, kind, meta.get("env"))
    if kind == "pipe":
        (ro, wo), (re_, we) = os.pipe(), os.pipe()
        streams = {ro: "o", re_: "e"}
        started, wall = time.monotonic(), time.time()
        proc = subprocess.Popen(words, cwd=job, env=env, stdin=subprocess.DEVNULL, stdout=wo, stderr=we, start_new_session=True)
        os.close(wo), os.close(we)
    else:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        streams = {master: "o"}
        started, wall = time.monotonic(), time.time()
        proc = subprocess.Popen(words, cwd=job, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
    select = selectors.DefaultSelector()
    for fd in streams:
        select.register(fd, selectors.EVENT_READ)
    events, ended, gone = [], None, None
    plan = (args.end.split(":") if args.end else [None, args.limit])
    while select.get_map():
        for key, _ in select.select(timeout=0.1):
            try:
                data = os.read(key.fd, 65536)
            except OSError:  # a terminal's last writer is gone
                data = b""
            if not data:
                select.unregister(key.fd)
                continue
            events.append([round(time.monotonic() - started, 6), streams[key.fd], data])
            if kind == "pty" and b"\x1b[6n" in data:
                os.write(key.fd, b"\x1b[1;1R")
        if proc.poll() is None and ended is None and time.monotonic() - started > float(plan[1]):
            ended = plan[0] or "KILL"
            os.killpg(proc.pid, getattr(signal, f"SIG{ended}"))
        if proc.poll() is not None:
            gone = gone or time.monotonic()
            if time.monotonic() - gone > 3:  # something that the script left behind holds the stream open
                break
    code = proc.wait()
    duration = time.monotonic() - started
    events = replace(events, replacements(job, python))
    encoding, texts = decode(events)
    header = {"version": 2, "width": WIDTH, "height": HEIGHT, "timestamp": int(wall), "command": meta.get("command", "python train.py"),
              "env": {"TERM": "", "PYTHONUNBUFFERED": "1"} if kind == "pipe" else {"TERM": "xterm-256color"}, "title": f"{name} ({kind})"}
    if encoding == "latin-1":
        header["x_encoding"] = "latin-1"
    path = os.path.join(args.out, f"{name}.{kind}.cast")
    with open(path, "w") as f:
        f.write(json.dumps(header) + "\n")
        for e in texts:
            f.write(json.dumps(e, ensure_ascii=False) + "\n")
    truth = []
    if os.path.exists(f"{job}/truth.jsonl"):
        for line in open(f"{job}/truth.jsonl"):
            entry = json.loads(line)
            entry["t"] = round(entry["t"] - wall, 3)
            truth.append({k: round(v, 6) if isinstance(v, float) else v for k, v in entry.items() if v is not None})
    joined = {s: "".join(e[2] for e in texts if e[1] == s) for s in "oe"}
    raw = {s: sum(len(e[2]) for e in events if e[1] == s) for s in "oe"}
    if kind == "pty":
        shown = end_of_display(joined["o"], WIDTH, 6, True)
    else:
        shown = {"stdout": end_of_display(joined["o"], 250, 4, False), "stderr": end_of_display(joined["e"], 250, 4, False)}
    shutil.rmtree(job, ignore_errors=True)
    print(f"{path}: rc {code}, {duration:.1f} s, {os.path.getsize(path)} bytes, {len(texts)} reads, {len(truth)} truths")
    return {"cast": os.path.basename(path), "exit_code": code if code >= 0 else None,
            "signal": signal.Signals(-code).name if code < 0 else None, "ended_by_recorder": f"SIG{ended}" if ended else None,
            "duration_s": round(duration, 2), "bytes_stdout": raw["o"], "bytes_stderr": raw["e"], "reads": len(texts),
            "final": truth[-1] if truth else None, "end_of_display": shown, "truth": thin(truth)}


def versions(python, packages):
    code = "import importlib.metadata as m, json, sys; print(json.dumps([sys.version.split()[0], {p: m.version(p) for p in sys.argv[1:]}]))"
    return json.loads(subprocess.check_output([os.path.abspath(python), "-c", code, *packages], text=True))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("script"), p.add_argument("--python", default=sys.executable)
    p.add_argument("--out", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    p.add_argument("--only", choices=["pipe", "pty"]), p.add_argument("--end", help="SIGNAL:SECONDS"), p.add_argument("--limit", default=180)
    p.add_argument("--meta", action="store_true")
    args = p.parse_args()
    name = os.path.splitext(os.path.basename(args.script))[0]
    meta = description(args.script)
    path = os.path.join(args.out, f"{name}.yaml")
    old = yaml.safe_load(open(path)) if os.path.exists(path) else {}
    runs = old.get("runs", {})
    if not args.meta:
        for kind in [args.only] if args.only else ["pipe", "pty"]:
            runs[kind] = one_run(kind, name, args.script, args.python, meta, args)
    if args.meta:
        python, packages, version = old["python"], old["packages"], old["version"]
    else:
        python, packages = versions(args.python, meta.get("packages") or [])
        version = meta.get("version") or ", ".join(f"{k} {v}" for k, v in packages.items()) or "n/a"
    record = {"name": name, "framework": meta["framework"], "version": version, "packages": packages, "python": python,
              "style": meta["style"], "command": meta.get("command", "python train.py"), "synthetic": bool(meta.get("synthetic", False)),
              "outcome": meta.get("outcome", "ok"), "shown": meta.get("shown", ""), "note": meta.get("note", ""), "runs": runs}
    with open(path, "w") as f:
        yaml.dump(record, f, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=160, default_flow_style=None)


if __name__ == "__main__":
    main()
