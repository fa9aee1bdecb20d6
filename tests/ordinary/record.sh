#!/bin/bash
# Records the real output of ordinary programs, none of which trains a model, for the tests that
# a parser of training progress must stay silent on. Debian 12, as root (packages are installed).
#
#   record.sh all            record every group (an existing NAME.zst is kept; FORCE=1 replaces)
#   record.sh GROUP...       record only these: apt build rust python lint npm go net system bench
#                            data docs
#   record.sh store          scrub and compress anew what was recorded
#   record.sh readme         write README.md from what was recorded
#
# GIT_REPO is the repository whose history and clones are recorded. Work files: /tmp/ordinary.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
W=/tmp/ordinary
GIT_REPO=${GIT_REPO:-$(git -C "$HERE" rev-parse --show-toplevel)}
mkdir -p $W/raw $W/meta
export LC_ALL=C.UTF-8 TERM=xterm-256color DEBIAN_FRONTEND=noninteractive GIT_PAGER=cat PAGER=cat
export CARGO_HOME=$W/cargo PATH=$W/venv/bin:$PATH:/usr/games:/usr/lib/postgresql/15/bin:/usr/sbin
export PIP_NO_CACHE_DIR=1 npm_config_cache=$W/npm-cache GOCACHE=$W/gocache GOFLAGS=-mod=mod GO111MODULE=auto
unset CI COLUMNS LINES
cd $W

# Runs a command on a pipe or on a terminal of 120x40 and copies at most CAP bytes of its output.
cat >$W/run.py <<'PY'
import fcntl, os, pty, signal, struct, sys, termios
form, cap, command = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if form == "pty":
    pid, source = pty.fork()
else:
    source, sink = os.pipe()
    pid = os.fork()
if pid == 0:
    if form == "pty":
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    else:
        os.setsid(), os.dup2(sink, 1), os.dup2(sink, 2)
    os.execvp("bash", ["bash", "-c", command])
if form == "pipe":
    os.close(sink)
end = lambda: os.killpg(pid, signal.SIGKILL)
signal.signal(signal.SIGTERM, lambda *_: (end(), sys.exit(1)))
while cap > 0:
    try:
        got = os.read(source, min(65536, cap))
    except OSError:
        break
    if not got:
        break
    cap -= len(got)
    os.write(1, got)
else:
    end()
os.close(source)
os.waitpid(pid, 0)
PY

# Takes machine details out: paths, kernel, registries, addresses of people and of machines.
scrub() {
    LC_ALL=C sed -E \
        -e "s#(/tmp/ordinary|$GIT_REPO)#/job#g" \
        -e 's#(^|[^A-Za-z0-9_.-])/root(/|\b)#\1/job\2#g' \
        -e 's#/root/\.#/job/.#g' \
        -e 's#AMD EPYC( \([0-9A-F]+\)| [0-9A-Z]+)?#x86-64 CPU#g; s#\b192\.0\.2\.2\b#192.0.2.7#g' \
        -e "s#\b$(uname -r | sed 's/[.]/[.]/g')#6.1.0-18-amd64#g" \
        -e 's#://[^/@ ]{1,200}@#://#g' \
        -e 's#\.disabled-by-[a-z]+#.disabled#g; s#[A-Za-z0-9.-]+\.example\b#host.example#g' \
        -e 's#\(builder@[a-z0-9.-]+\)#(user@example.org)#g' \
        -e 's#[A-Za-z0-9_.+-]+@[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}#user@example.org#g' \
        -e 's#\b([a-z0-9-]+\.)*(debian\.org|pypi\.org|pythonhosted\.org|crates\.io|pypi\.python\.org|npmjs\.(org|com)|(proxy|sum)\.golang\.org)\b#example.org#g'
}

# rec NAME pipe|pty VERSION-COMMAND COMMAND [BYTES] [SECONDS]
rec() {
    local name=$1 form=$2 version=$3 command=$4 cap=${5:-600000} limit=${6:-150} end=whole raw began=$SECONDS
    [[ -e $HERE/$name.zst && -z ${FORCE:-} ]] && return
    raw=$W/raw/$name
    timeout -k 5 "$limit" nice -n 5 unshare -u bash -c 'hostname node01; exec python3 "$@"' - \
        $W/run.py "$form" "$cap" "$command" </dev/null >"$raw"
    (($? == 124)) && end="first $limit s"
    if (($(stat -c %s "$raw") >= cap)); then  # cut at the last line end
        end="first $((cap / 1000)) kB"
        python3 -c 'import sys; d = open(sys.argv[1], "rb").read(); open(sys.argv[1], "wb").write(d[:d.rfind(b"\n") + 1] or d)' "$raw"
    fi
    version=$(bash -c "$version" 2>&1 </dev/null | grep -m1 '[0-9]' | scrub | sed -E 's/^ +//; s/ {2,}/ /g' | cut -c1-60)
    [[ $version =~ ^v?[0-9] ]] && version="${name%%-*} $version"
    printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$version" "${command//$'\n'/\\n}" "$form" "$end" >"$W/meta/$name"
    store "$raw"
    echo "$name: $(stat -c %s "$raw") bytes, $end, $((SECONDS - began)) s"
}
store() { scrub <"$1" | zstd -q -19 -f -o "$HERE/${1##*/}.zst"; }
have() { command -v "$1" >/dev/null; }
dpkgv() { echo "dpkg-query -W -f '\${Package} \${Version}' $1"; }

group_apt() {
    local lists="-o Dir::State::lists=$W/lists -o Dir::Etc::sourceparts=- -o Dir::Etc::sourcelist=$W/src.list"
    mkdir -p $W/lists/partial $W/lists2/partial $W/deb $W/src
    echo 'deb-src http://deb.debian.org/debian bookworm main' >$W/src.list
    rec apt-update pipe 'apt-get --version' "apt-get $lists update"
    rec apt-update-pty pty 'apt-get --version' "apt-get -o Dir::State::lists=$W/lists2 update"
    rec apt-install-pty pty 'apt --version' 'apt install -y ninja-build cmake meson golang-go nginx-light apache2-utils wrk postgresql ffmpeg lammps' 900000 400
    rec apt-get-install pipe 'apt-get --version' 'apt-get install -y aria2 pv fio sysbench stress-ng iperf3 rsync sqlite3 strace lsof sysstat p7zip-full zip unzip hyperfine shellcheck cppcheck restic borgbackup rclone parallel squashfs-tools genisoimage imagemagick sox glpk-utils minisat redis-server memtester bc cloc tree gawk jq pigz doxygen universal-ctags povray stockfish mafft zstd time valgrind gdb bison flex iputils-ping' 900000 400
    rec apt-get-download-pty pty 'apt-get --version' "cd $W/deb && apt-get download hello cowsay libtext-csv-perl tzdata libc6-dbg"
    rec apt-get-source pipe 'apt-get --version' "cd $W/src && apt-get $lists source zlib lua5.4 json-c hello fribidi libtext-csv-perl libyaml-tiny-perl cmark" 600000 200
    rec dpkg-install pipe 'dpkg --version' "dpkg -i $W/deb/hello*.deb $W/deb/cowsay*.deb"
    rec apt-remove-pty pty 'apt --version' 'apt remove -y hello cowsay'
    rec apt-simulate pipe 'apt-get --version' 'apt-get -s install gnome-core texlive-full' 400000
    rec apt-list pipe 'apt --version' 'apt list' 500000
    rec apt-cache-show pipe 'apt-cache --version' "apt-cache show '^lib[a-c].*'" 500000
    rec dpkg-l pipe 'dpkg --version' 'dpkg -l'
    rec dpkg-deb-c pipe 'dpkg-deb --version' "dpkg-deb -c $W/deb/tzdata*.deb; dpkg-deb -I $W/deb/tzdata*.deb" 200000
}

group_build() {
    cd $W/src || return
    tar xf lua5.4_*.orig.tar.gz
    local lua=$(echo $W/src/lua-5*/) zlib=$(echo $W/src/zlib-*/) jsonc=$(echo $W/src/json-c-*/)
    local fribidi=$(echo $W/src/fribidi-*/) hello=$(echo $W/src/hello-*/) cmark=$(echo $W/src/cmark-*/)
    rec make-j2 pipe 'make --version' "cd $lua && make clean && make -j2 MYCFLAGS='-Wall -Wextra -Wconversion -Wshadow' linux"
    rec make-pty pty 'make --version' "cd $lua && make clean && make linux"
    rec make-debug pipe 'make --version' "cd $lua && make -d -n linux" 500000
    rec configure pipe 'echo configure script of GNU Autoconf 2.69' "cd $hello && ./configure && make -j2"
    rec configure-pty pty 'bash --version' "cd $zlib && ./configure && make -j2 && make test"
    rec make-check pipe 'make --version' "cd $hello && make check"
    rec cmake-make pipe 'cmake --version' "cmake -S $jsonc -B $W/b-make && make -C $W/b-make -j2"
    rec cmake-make-pty pty 'cmake --version' "cmake -S $jsonc -B $W/b-make2 && make -C $W/b-make2 -j2"
    rec cmake-make-verbose pipe 'cmake --version' "cmake -S $cmark -B $W/b-make3 && make -C $W/b-make3 VERBOSE=1"
    rec cmake-ninja pipe 'echo ninja $(ninja --version)' "cmake -GNinja -S $cmark -B $W/b-ninja && ninja -C $W/b-ninja"
    rec cmake-ninja-pty pty 'echo ninja $(ninja --version)' "cmake -GNinja -S $jsonc -B $W/b-ninja2 && ninja -C $W/b-ninja2"
    rec ninja-verbose pipe 'echo ninja $(ninja --version)' "ninja -C $W/b-ninja2 clean; ninja -v -C $W/b-ninja2"
    rec cmake-trace pipe 'cmake --version' "cmake --trace-expand -S $cmark -B $W/b-trace" 500000
    rec ctest pipe 'ctest --version' "cd $W/b-make && ctest"
    rec ctest-verbose pipe 'ctest --version' "cd $W/b-make && ctest -V"
    rec ctest-pty pty 'ctest --version' "cd $W/b-ninja2 && ctest -j2 --progress"
    rec meson pipe 'meson --version' "cd $fribidi && meson setup $W/b-meson -Ddocs=false && ninja -C $W/b-meson && meson test -C $W/b-meson -v"
    rec meson-test-pty pty 'meson --version' "cd $fribidi && meson setup $W/b-meson2 -Ddocs=false && meson compile -C $W/b-meson2 && meson test -C $W/b-meson2"
    rec gcc-time-report pipe 'gcc --version' "cd $zlib && for f in deflate inflate trees; do gcc -O2 -ftime-report -c \$f.c -o "$W/out.o"; done"
    rec gcc-opt-info pipe 'gcc --version' "cd $lua/src && gcc -O3 -fopt-info-all -c lvm.c -o "$W/out.o"" 500000
    rec gcc-verbose pipe 'gcc --version' "cd $zlib && gcc -v -Q -O2 -c inflate.c -o "$W/out.o"" 200000
    rec gcc-warnings-pty pty 'gcc --version' "cd $lua/src && for f in lvm lapi ldo lgc lparser; do gcc -Wall -Wextra -Wconversion -Wsign-conversion -Wpedantic -fanalyzer -c \$f.c -o "$W/out.o"; done" 600000
    rec gcc-asm pipe 'gcc --version' "cd $lua/src && gcc -O2 -S -fverbose-asm lparser.c -o -" 400000
    rec ld-trace pipe 'ld --version' "cd $lua/src && gcc -o $W/lua-t *.o -lm -ldl -Wl,-E,--trace,--verbose,-M" 500000
    rec nm pipe 'nm --version' "nm -D --defined-only -S /usr/lib/x86_64-linux-gnu/libc.so.6; nm $W/b-make/libjson-c.a" 500000
    rec objdump pipe 'objdump --version' 'objdump -d /usr/lib/x86_64-linux-gnu/libz.so.1' 1100000
    rec readelf pipe 'readelf --version' 'readelf -aW /usr/bin/bash' 600000
    rec strings pipe 'strings --version' 'strings -t d /usr/bin/git /usr/bin/gdb' 500000
    rec cppcheck pipe 'cppcheck --version' "cd $zlib && cppcheck --enable=all ." 300000
    rec shellcheck pipe 'shellcheck --version | sed -n "2s/version:/ShellCheck/p"' "shellcheck -x /etc/init.d/* /usr/bin/zgrep /usr/bin/xzgrep /usr/bin/ldd /usr/bin/catchsegv /usr/bin/gettext.sh /usr/bin/c_rehash; shellcheck -f gcc /usr/bin/zdiff /usr/bin/znew /etc/init.d/nginx" 600000
    rec bison-report pipe 'bison --version' "printf '%%token N\n%%left 043 045\n%%%%\ne: e 043 e | e 045 e | e e | N ;\n' | sed s/043/\"'+'\"/g\;s/045/\"'*'\"/g >$W/g.y; cd $W && bison -Wall -Wcounterexamples --report=all g.y; cat g.output"
    rec valgrind pipe 'valgrind --version' 'valgrind -v --leak-check=full --show-leak-kinds=all ls -l /usr/bin' 400000
    rec gdb pipe 'gdb --version' "gdb -batch -ex 'info functions' -ex 'break main' -ex run -ex bt -ex 'info registers' -ex 'disassemble' --args /usr/bin/bash -c true" 400000
    rec doxygen pipe 'doxygen --version' "mkdir -p $W/dox && cd $W/dox && doxygen -g >/dev/null && sed -i 's#^INPUT .*#INPUT = $zlib#; s#^RECURSIVE.*#RECURSIVE = YES#; s#^EXTRACT_ALL.*#EXTRACT_ALL = YES#; s#^GENERATE_LATEX.*#GENERATE_LATEX = NO#' Doxyfile && doxygen" 600000
    rec prove-verbose pipe 'prove --version' "cd $W/src/libtext-csv-perl-*/ && prove -lv t" 700000 200
    rec prove-pty pty 'prove --version' "cd $W/src/libtext-csv-perl-*/ && prove -l t; cd $W/src/libyaml-tiny-perl-*/ && prove -lj2 t"
    cd $W
}

group_rust() {
    mkdir -p $W/crate/src $W/crate/benches && cd $W/crate || return
    cat >Cargo.toml <<'T'
[package]
name = "words"
version = "0.1.0"
edition = "2021"
[dependencies]
serde_json = "1"
regex = "1"
clap = { version = "4", features = ["derive"] }
rayon = "1"
[dev-dependencies]
criterion = "0.5"
[[bench]]
name = "count"
harness = false
T
    cat >src/main.rs <<'T'
use std::collections::HashMap;
use std::fs::File;
static mut CALLS: usize = 0;
struct Unused { field: u32 }
fn count(text: &String) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let mut unused = 3;
    for i in 0..text.split_whitespace().count() {
        let word = text.split_whitespace().nth(i).unwrap().to_string().clone();
        *counts.entry(word).or_insert(0) += 1;
    }
    unsafe { CALLS += 1; }
    return counts;
}
fn main() {
    let text = "a b a".to_string();
    for (word, n) in count(&text) { println!("{} {}", word, n); }
    let x = 5 as i32; if x == 5 { std::mem::drop(x) }
}
#[test] fn counts() { assert_eq!(count(&"a b a".to_string())["a"], 2); }
#[test] fn fails() { assert_eq!(count(&"a b a".to_string())["b"], 2, "one b"); }
T
    cat >benches/count.rs <<'T'
use criterion::*;
fn sort(c: &mut Criterion) {
    let mut g = c.benchmark_group("sort");
    for n in [10u64, 100, 1000] {
        g.throughput(Throughput::Elements(n));
        g.bench_function(BenchmarkId::from_parameter(n), |b| b.iter(|| { let mut v: Vec<u64> = (0..n).map(|i| i * 7919 % 1009).collect(); v.sort(); v }));
    }
}
criterion_group!(benches, sort);
criterion_main!(benches);
T
    rec cargo-fetch-pty pty 'cargo -V' 'cargo fetch'
    rec cargo-build-pty pty 'cargo -V' 'cargo build' 600000 240
    rec cargo-build-verbose pipe 'cargo -V' 'cargo build -v --release --target-dir /tmp/ordinary/t-release' 600000 240
    rec cargo-test pipe 'cargo -V' 'cargo test --bins'
    rec cargo-clippy-pty pty 'cargo clippy -V' 'cargo clippy --bins -- -W clippy::pedantic' 600000 240
    rec criterion pipe 'cargo tree --depth 1 -e dev | grep -o "criterion v.*"' 'cargo bench --bench count' 600000 280
    rec criterion-pty pty 'cargo tree --depth 1 -e dev | grep -o "criterion v.*"' 'cargo bench --bench count' 600000 200
    rec cargo-tree pipe 'cargo -V' 'cargo tree -e all'
    rec cargo-metadata pipe 'cargo -V' 'cargo metadata --format-version 1 | python3 -m json.tool' 500000
    rec cargo-json pipe 'cargo -V' 'touch src/main.rs; cargo build --message-format=json'
    rec cargo-doc-pty pty 'cargo -V' 'cargo doc' 300000 200
    rec cargo-install-pty pty 'cargo -V' "cargo install --root $W/bin --target-dir $W/t-install pastel" 300000 280
    rec rustc-llvm-ir pipe 'rustc -V' 'printf "pub fn f(v: &mut Vec<u64>) -> Option<u64> { v.sort(); v.iter().max().copied() }" >/tmp/ordinary/f.rs; rustc -O -v --edition 2021 --crate-type lib --emit=llvm-ir,mir,asm --out-dir /tmp/ordinary /tmp/ordinary/f.rs; cat /tmp/ordinary/f.mir /tmp/ordinary/f.ll /tmp/ordinary/f.s' 300000
    local dir
    dir=$(ls -d $CARGO_HOME/registry/src/*/regex-syntax-* | head -1)
    rec cargo-test-crate pipe 'cargo -V' "cp -r $dir $W/rs && cd $W/rs && cargo test --lib" 600000 240
    rec rustc-errors-pty pty 'rustc -V' "cd $W && printf 'fn main() { let v: Vec<u32> = vec![1, 2]; let w = v; println!(\"{:?}\", v); let s: &str = 5; foo(); match Some(1) { None => () } }\n#[derive(Clon)] struct A<'\"'\"'a>(&str);\n' >e.rs; rustc --edition 2021 e.rs; rustc --explain E0382; rustc --explain E0004; rustc --explain E0106"
    rec rustc-print pipe 'rustc -V' 'rustc -C help; rustc -W help; rustc --print target-list; rustc --print cfg; rustc --print target-features' 
    cd $W
}

group_python() {
    have $W/venv/bin/python || python3 -m venv $W/venv
    local P="pip --version" T="pytest --version"
    rec pip-install-pty pty "$P" 'pip install --progress-bar on numpy pandas sympy networkx matplotlib django pytest' 300000 250
    rec pip-install-verbose pipe "$P" 'pip install -v pytest-xdist pytest-sugar pytest-benchmark pytest-timeout hypothesis attrs cloudpickle pympler coverage ruff flake8 mypy pylint bandit black isort sphinx snakemake ansible-core uv tqdm rich httpie structlog build cython' 600000 280
    rec pip-download-pty pty "$P" "pip download --no-deps -d $W/pip-dl scipy pyarrow jupyterlab" 300000
    rec pip-download-sdist pipe "$P" "pip download -v --no-deps --no-binary attrs,sortedcontainers,wrapt -d $W/pip-src attrs sortedcontainers wrapt" 300000
    rec pip-build-wheel pipe "$P" "pip wheel -v --no-deps --no-binary markupsafe,wrapt,ujson -w $W/pip-whl markupsafe wrapt ujson" 300000
    rec pip-list pipe "$P" 'pip list; pip show -f sympy; pip check; pip debug' 300000
    rec pip-conflict pipe "$P" "pip install --dry-run 'django==4.2' 'asgiref==2.0'; pip install --dry-run no-such-package-of-this-name-0"
    rec uv-pip-install-pty pty 'uv --version' "uv --no-cache venv $W/uvenv && uv --no-cache pip install --python $W/uvenv/bin/python flask fastapi requests pillow scipy"
    rec uv-pip-verbose pipe 'uv --version' "uv --no-cache -v pip install --python $W/uvenv/bin/python jinja2 starlette aiohttp" 400000
    mkdir -p $W/py && cat >$W/py/test_shop.py <<'T'
import pytest, random, warnings
class Basket:
    def __init__(self): self.items = {}
    def add(self, name, n=1): self.items[name] = self.items.get(name, 0) + n
    def total(self, prices): return sum(prices[k] * n for k, n in self.items.items())
@pytest.fixture
def basket():
    b = Basket(); b.add("pear", 3); b.add("fig"); return b
@pytest.mark.parametrize("price", range(40))
def test_total(basket, price): assert basket.total({"pear": price, "fig": 2}) == 3 * price + (2 if price % 7 else 3)
def test_missing(basket): basket.total({"pear": 1})
def test_text(): assert "the quick brown fox\njumps over\n" * 3 == "the quick brown fox\njumped over\n" * 3
def test_dict(): assert {i: i * i for i in range(30)} == {i: i ** 2 + (i == 17) for i in range(30)}
def test_warns(): warnings.warn("old basket", DeprecationWarning)
@pytest.mark.skip(reason="no scales")
def test_weight(): pass
@pytest.mark.xfail
def test_later(): assert 0
def test_output(): print("weighing", [random.random() for _ in range(20)]); raise RuntimeError("scales broke")
T
    rec pytest-failures pipe "$T" "cd $W/py && pytest -p no:sugar -v -l test_shop.py"
    rec pytest-failures-pty pty "$T" "cd $W/py && pytest -p no:sugar -ra --durations=10 -vv test_shop.py"
    rec pytest-sugar-pty pty 'pip list | grep "^pytest-sugar "' "cd $W/py && pytest test_shop.py --pyargs networkx.algorithms.centrality"
    rec pytest-sympy-verbose pipe "$T" 'pytest -p no:sugar -v --pyargs sympy.sets sympy.combinatorics sympy.matrices sympy.functions' 1200000 200
    rec pytest-sympy-quiet pipe "$T" 'pytest -p no:sugar -q --pyargs sympy.core sympy.logic sympy.printing' 300000 150
    rec pytest-numpy-verbose pipe "$T" 'pytest -p no:sugar -v --pyargs numpy._core.tests.test_umath numpy._core.tests.test_multiarray numpy._core.tests.test_numeric' 1200000 200
    rec pytest-numpy-pty pty "$T" 'pytest -p no:sugar -v --pyargs numpy.lib numpy.linalg' 800000 150
    rec pytest-numpy-xdist-pty pty "$T" 'pytest -p no:sugar -n 2 -v --pyargs numpy.ma numpy.polynomial' 600000 150
    rec pytest-pandas-verbose pipe "$T" 'pytest -p no:sugar -v --pyargs pandas.tests.strings pandas.tests.indexes' 1200000 240
    rec pytest-pandas-quiet-pty pty "$T" 'pytest -p no:sugar -q --pyargs pandas.tests.scalar' 300000 150
    rec pytest-networkx pipe "$T" 'pytest -p no:sugar --pyargs networkx' 300000 200
    rec pytest-networkx-xdist pipe "$T" 'pytest -p no:sugar -n 2 -v --pyargs networkx.algorithms' 900000 200
    rec pytest-attrs-hypothesis pipe "$T" "cd $W/pip-src && tar xf attrs-*.tar.gz && cd attrs-*/ && pytest -p no:sugar -v --hypothesis-show-statistics tests" 700000 150
    rec pytest-coverage pipe 'coverage --version' "cd $W/py && coverage run --source=networkx -m pytest -p no:sugar -q --pyargs networkx.classes networkx.utils; coverage report -m" 400000
    rec pytest-collect pipe "$T" 'pytest -p no:sugar --collect-only --pyargs networkx.algorithms' 500000
    rec pytest-benchmark pipe 'pip list | grep "^pytest-benchmark "' "cd $W/py && printf 'import json, pytest\n@pytest.mark.parametrize(\"n\", [10, 100, 1000])\ndef test_dumps(benchmark, n): benchmark(json.dumps, list(range(n)))\n@pytest.mark.parametrize(\"n\", [10, 100, 1000])\ndef test_sort(benchmark, n): benchmark(sorted, list(range(n, 0, -1)))\n' >test_b.py; pytest -p no:sugar -p no:xdist test_b.py"
    rec regrtest pipe 'python3 -V' 'python3 -m test -j2 test_json test_re test_collections test_dict test_list test_str test_set test_math test_datetime test_heapq test_bisect test_zlib test_textwrap test_csv test_fractions test_statistics' 300000
    rec regrtest-pty pty 'python3 -V' 'python3 -m test -v test_itertools test_functools test_enum test_argparse' 700000
    rec unittest-verbose pipe 'python3 -V' 'python3 -m unittest -v test.test_unicodedata test.test_typing test.test_decimal test.test_dataclasses test.test_ipaddress' 900000
    rec doctest-verbose pipe 'python3 -V' 'python3 -m doctest -v $(python3 -c "import difflib, statistics, sympy.core.expr as e; print(difflib.__file__, statistics.__file__)")' 400000
    rec django pipe 'django-admin --version' "cd $W && rm -rf shop && django-admin startproject shop && cd shop && python manage.py check && python manage.py migrate && python manage.py showmigrations && python manage.py sqlmigrate auth 0001 && python manage.py test -v 3 django.contrib.auth" 400000
    rec django-runserver pipe 'django-admin --version' "cd $W/shop && (timeout 12 python -u manage.py runserver 127.0.0.1:8765 & sleep 3; for i in \$(seq 60); do curl -s -o /dev/null http://127.0.0.1:8765/admin/login/?q=\$i; curl -s -o /dev/null http://127.0.0.1:8765/page/\$i; done; wait)"
    rec sphinx pipe 'sphinx-build --version' "cd $W/pip-src/attrs-*/ && mkdir -p d && for i in \$(seq 60); do printf 'Page %s\n=======\n\n.. automodule:: json\n   :members:\n' \$i >d/p\$i.rst; done; printf 'Index\n=====\n\n.. toctree::\n   :glob:\n\n   p*\n' >d/index.rst; sphinx-build -v -C -D extensions=sphinx.ext.autodoc d $W/html" 400000
    rec sphinx-pty pty 'sphinx-build --version' "cd $W/pip-src/attrs-*/ && sphinx-build -E -C -D extensions=sphinx.ext.autodoc d $W/html2" 400000
    mkdir -p $W/snake && cat >$W/snake/Snakefile <<'T'
rule all:
    input: expand("out/{n}.sum", n=range(40)), "out/report.txt"
rule make:
    output: "out/{n}.txt"
    shell: "seq {wildcards.n} 5000 > {output}"
rule sum:
    input: "out/{n}.txt"
    output: "out/{n}.sum"
    shell: "md5sum {input} > {output}"
rule report:
    input: expand("out/{n}.sum", n=range(40))
    output: "out/report.txt"
    shell: "cat {input} | tee {output}"
T
    rec snakemake pipe 'snakemake --version' "cd $W/snake && snakemake -c2 --printshellcmds"
    rec snakemake-pty pty 'snakemake --version' "cd $W/snake && rm -rf out && snakemake -c2"
    cat >$W/py/play.yml <<'T'
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - {name: make folders, file: {path: "/tmp/ordinary/ans/{{ item }}", state: directory}, loop: "{{ range(12) | list }}"}
    - {name: write files, copy: {content: "n={{ item }}\n", dest: "/tmp/ordinary/ans/{{ item }}/n.ini"}, loop: "{{ range(12) | list }}"}
    - {name: look, command: ls -l /tmp/ordinary/ans}
    - {name: fail on purpose, command: "false", ignore_errors: true}
    - {name: wait for it, command: "test -e /tmp/ordinary/none", register: r, until: r.rc == 0, retries: 4, delay: 1, ignore_errors: true}
T
    rec ansible pipe 'ansible-playbook --version' "ansible-playbook -v -i localhost, $W/py/play.yml"
    rec ansible-pty pty 'ansible-playbook --version' "ansible-playbook -D -i localhost, $W/py/play.yml"
    rec python-importtime pipe 'python3 -V' 'python -X importtime -c "import sympy, pandas"' 400000
    rec python-cprofile pipe 'python3 -V' 'python -m cProfile -s cumtime -m sympy.utilities.lambdify; python -m cProfile -s tottime -c "import networkx as n; n.betweenness_centrality(n.random_geometric_graph(150, .2, seed=1))"' 400000
    rec python-dis pipe 'python3 -V' 'python -m dis $(python -c "import argparse; print(argparse.__file__)")' 400000
    rec python-compileall pipe 'python3 -V' 'python -m compileall -f $(python -c "import sympy; print(sympy.__path__[0])")' 300000
    rec python-verbose pipe 'python3 -V' 'python -v -c "import asyncio, json, sqlite3"' 300000
    rec python-trace pipe 'python3 -V' 'python -m trace --trace $(python -c "import textwrap; print(textwrap.__file__)"); python -m trace --listfuncs --module calendar 2024' 300000
    rec python-timeit pipe 'python3 -V' 'for s in "sorted(range(100))" "sum(range(1000))" "{i: i for i in range(50)}" "str(12345)"; do python -m timeit -v "$s"; done'
    rec python-help pipe 'python3 -V' 'python -m pydoc builtins; python -m pydoc argparse; python -m calendar 2024; python -m this' 400000
    rec python-tokenize pipe 'python3 -V' 'python -m tokenize $(python -c "import heapq; print(heapq.__file__)"); python -m ast $(python -c "import bisect; print(bisect.__file__)")' 300000
    rec rich-demo-pty pty 'pip list | grep "^rich "' 'timeout 20 python -m rich.progress; python -m rich; python -m rich.table; python -m rich.tree' 500000
    rec tqdm-bytes-pty pty 'tqdm --version' 'head -c 300000000 /dev/zero | pv -qL 40m | tqdm --bytes --total 300000000 >/dev/null; seq 3000000 | tqdm --unit lines --mininterval 0.05 >/dev/null'
    rec json-log pipe 'pip list | grep "^structlog "' "python - <<'P'
import structlog, sqlite3, os, time
structlog.configure(processors=[structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt='iso'), structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()])
log = structlog.get_logger(service='indexer')
for root, dirs, files in os.walk('/usr/share/perl5'):
    for name in files:
        at = time.perf_counter(); path = os.path.join(root, name)
        try:
            lines = open(path).read().count('\n')
            log.info('file indexed', path=path, lines=lines, size=os.path.getsize(path), elapsed=time.perf_counter() - at, status=200)
        except UnicodeDecodeError:
            log.exception('cannot decode', path=path)
P" 400000
    rec python-logging pipe 'python3 -V' "python - <<'P'
import asyncio, logging, urllib.request
logging.basicConfig(level=logging.DEBUG, format='%(asctime)s,%(msecs)03d %(levelname)-8s [%(name)s:%(lineno)d] %(message)s')
import sqlite3, zipfile, xml.dom.minidom, os
asyncio.run(asyncio.sleep(0), debug=True)
log = logging.getLogger('shop.orders')
db = sqlite3.connect(':memory:'); db.set_trace_callback(log.debug)
db.execute('create table orders (id integer primary key, amount real, state text)')
for i in range(2500):
    db.execute('insert into orders (amount, state) values (?, ?)', (i * 37 % 1009 / 10, ['new', 'paid', 'sent'][i % 3]))
    if i % 50 == 0: log.info('processed %d orders, total %.2f', i, db.execute('select sum(amount) from orders').fetchone()[0])
    if i % 400 == 0:
        try: db.execute('insert into orders (id) values (1)')
        except sqlite3.Error: log.exception('order %d refused', i)
P" 300000
}

group_lint() {
    local site; site=$(python -c 'import sympy, os; print(os.path.dirname(sympy.__path__[0]))')
    rec ruff pipe 'ruff --version' "ruff check --isolated --no-cache --select ALL --output-format full $site/networkx/algorithms" 600000
    rec ruff-concise-pty pty 'ruff --version' "ruff check --isolated --no-cache --select ALL --output-format concise $site/django/db; ruff check --isolated --no-cache --statistics --select ALL $site/sympy" 400000
    rec ruff-json pipe 'ruff --version' "ruff check --isolated --no-cache --output-format json $site/pytest $site/_pytest $site/pip" 300000
    rec flake8 pipe 'flake8 --version' "flake8 --isolated $site/sympy/core $site/django/forms" 500000
    rec mypy pipe 'mypy --version' "mkdir -p $W/my && cp -r $site/networkx $site/attr $W/my && cd $W/my && mypy --cache-dir=/dev/null --strict networkx/classes networkx/utils" 500000 200
    rec mypy-verbose pipe 'mypy --version' "cd $W/my && mypy -v --cache-dir=/dev/null attr" 300000
    rec pylint pipe 'pylint --version' "pylint $site/networkx/classes $site/_pytest/config" 500000 200
    rec bandit pipe 'bandit --version' "bandit -r $site/django/core $site/pip" 400000
    rec bandit-pty pty 'bandit --version' "bandit -r -ll $site/sympy $site/django" 200000
    rec black-diff pipe 'black --version' "cp -r $site/sympy/sets $site/sympy/plotting $W/my; black --diff $W/my/sets $W/my/plotting" 600000
    rec isort-check pipe 'isort --version | sed -n "s/VERSION/isort/p"' "isort --check --diff -v $site/sympy/core" 300000
    rec cython pipe 'cython --version' "cd $W && cp $site/networkx/utils/*.py $W/py/; cython -3 -a -v $W/py/misc.py $W/py/heaps.py; cythonize -3 -i -f $W/py/union_find.py" 300000
    rec cloc pipe 'cloc --version' "cloc --by-file $site/networkx $site/django/db" 300000
    rec ctags pipe 'ctags --version' "ctags -x -R $site/networkx/algorithms" 400000
}

group_npm() {
    have npm || return
    mkdir -p $W/web/src && cd $W/web || return
    echo '{"name":"web","version":"1.0.0","private":true}' >package.json
    rec npm-install-verbose pipe 'npm -v' 'npm install --loglevel verbose typescript webpack webpack-cli jest mocha eslint@8 prettier' 600000 250
    rec npm-install-pty pty 'npm -v' 'npm install vite react react-dom lodash tap-spec' 300000 200
    rec npm-ls pipe 'npm -v' 'npm ls --all --long; npm audit --offline; npm outdated; npm config ls -l' 400000
    rec npm-help pipe 'npm -v' 'npm help install; npm help config; npm ping; npm run none' 200000
    for i in $(seq 30); do
        printf 'import { join } from "path";\nexport function f%s(a: number, b: string): number { return a + b; }\nexport const v%s: string = f%s(%s, 4);\nlet unused: any = missing%s;\nfunction g(x) { if (x == null) return; else { return x.y.z } }\n' $i $i $i $i $i >src/m$i.ts
        printf 'const { add } = require("./add");\ndescribe("add %s", () => {\n  for (let i = 0; i < 12; i++) it("adds " + i, () => { if (add(i, %s) !== i + %s + (i === 7 && %s %% 5 === 0 ? 1 : 0)) throw new Error("expected " + i); });\n  it("prints", () => { console.log("row", %s, [1, 2, 3].map(x => x / 7)); });\n});\n' $i $i $i $i $i >src/a$i.test.js
        printf 'import _ from "lodash"; import React from "react";\nexport const x%s = _.range(%s).map(i => React.createElement("b", { key: i }, i));\n' $i $i >src/w$i.js
    done
    echo 'exports.add = (a, b) => a + b;' >src/add.js
    { for i in $(seq 30); do echo "import { x$i } from './w$i.js'; console.log(x$i);"; done; } >src/index.js
    echo '<script type="module" src="/src/index.js"></script>' >index.html
    rec tsc pipe 'npx tsc -v' 'npx tsc --strict --noEmit src/*.ts'
    rec tsc-pty pty 'npx tsc -v' 'npx tsc --strict --noEmit --pretty --extendedDiagnostics src/*.ts'
    rec tsc-trace pipe 'npx tsc -v' 'npx tsc --noEmit --traceResolution --listFiles --types node src/m1.ts' 200000
    rec webpack-pty pty 'npm ls webpack | grep -o -m1 "webpack@[0-9.]*"' 'npx webpack --mode production --progress'
    rec webpack-stats pipe 'npm ls webpack | grep -o -m1 "webpack@[0-9.]*"' 'npx webpack --mode development --progress=profile --stats verbose' 300000
    rec vite-build-pty pty 'npx vite --version' 'npx vite build --debug' 200000
    rec vite-build pipe 'npx vite --version' 'npx vite build'
    rec jest-pty pty 'npx jest --version' 'npx jest --ci=false' 500000
    rec jest-verbose pipe 'npx jest --version' 'npx jest --verbose --coverage' 500000
    rec mocha pipe 'npx mocha --version' 'npx mocha src/*.test.js; npx mocha -R tap src/*.test.js'
    rec mocha-progress-pty pty 'npx mocha --version' 'npx mocha -R progress src/a1*.test.js; npx mocha -R nyan src/a1*.test.js; npx mocha -R landing src/a2*.test.js' 400000
    rec eslint-pty pty 'npx eslint --version' "npx eslint --no-eslintrc --env es2022,node --parser-options sourceType:module --rule '{\"no-undef\":2,\"semi\":[2,\"never\"],\"quotes\":[2,\"single\"],\"no-console\":1}' src/*.js node_modules/lodash/a*.js" 300000
    rec prettier pipe 'npx prettier --version' 'npx prettier --check src node_modules/lodash/*.js --no-config --ignore-path /dev/null --with-node-modules' 200000
    rec node-test pipe 'node -v' "sed 's/describe(/require(\"node:test\").describe(/;s/ it(/ require(\"node:test\").it(/' src/a5.test.js >src/n5.cjs; sed 's/describe(/require(\"node:test\").describe(/;s/ it(/ require(\"node:test\").it(/' src/a6.test.js >src/n6.cjs; node --test --test-reporter tap src/n5.cjs src/n6.cjs; node --test --test-reporter spec src/n5.cjs"
    rec node-trace pipe 'node -v' 'node --trace-gc --trace-opt --trace-deopt -e "for (let j = 0, s = []; j < 300000; j++) { s.push({ j, t: String(j) }); if (j % 50000 == 0) s.sort((a, b) => a.t < b.t ? 1 : -1) }"' 300000
    cd $W
}

group_go() {
    have go || return
    rec go-build-x pipe 'go version' 'mkdir -p /tmp/ordinary/gohello && cd /tmp/ordinary/gohello && printf "package main\nimport (\"fmt\"; \"net/http\"; \"encoding/json\")\nfunc main() { fmt.Println(http.StatusOK, json.Valid(nil)) }\n" >main.go && go mod init hello; go build -v -x -a -o hello .' 500000 280
    rec go-test-verbose pipe 'go version' 'go test -v strings strconv sort bufio encoding/json text/template' 700000 240
    rec go-test-json pipe 'go version' 'go test -json container/... unicode/... path/...' 300000
    rec go-bench pipe 'go version' 'go test -run none -bench . -benchtime 20ms -benchmem strings sort strconv' 300000
    rec go-vet pipe 'go version' 'go vet -json strings bytes; go list -deps -f "{{.ImportPath}} {{.GoFiles}}" net/http; go doc -all strings; go env' 300000
}

group_net() {
    mkdir -p $W/www $W/dl
    [[ -e $W/www/big.bin ]] || head -c 60000000 /dev/urandom >$W/www/big.bin
    cat >$W/nginx.conf <<N
worker_processes 1; pid $W/nginx.pid; error_log $W/nginx-error.log info; daemon on;
events { worker_connections 256; }
http {
  log_format json escape=json '{"time":"\$time_iso8601","remote":"\$remote_addr","request":"\$request","status":\$status,"bytes":\$body_bytes_sent,"duration":\$request_time,"agent":"\$http_user_agent"}';
  access_log $W/access.log; access_log $W/access-json.log json;
  server { listen 127.0.0.1:8088; root $W/www; autoindex on; location /doc { alias /usr/share/doc; } location /gone { return 410; } location /up { proxy_pass http://127.0.0.1:1; } }
}
N
    nginx -c $W/nginx.conf 2>/dev/null
    local url=http://127.0.0.1:8088/big.bin
    rec curl-meter pipe 'curl --version' "curl --limit-rate 8M -o /dev/null $url"
    rec curl-meter-pty pty 'curl --version' "curl --limit-rate 5M -o /dev/null $url -o /dev/null $url"
    rec curl-bar-pty pty 'curl --version' "curl -# --limit-rate 8M -o /dev/null $url"
    rec curl-verbose pipe 'curl --version' "for p in / /doc/ /gone /none /up; do curl -sv --trace-time http://127.0.0.1:8088\$p | head -40; done" 300000
    rec curl-parallel-pty pty 'curl --version' "curl --no-progress-meter -o /dev/null $url; curl -Z --limit-rate 8M -o /dev/null $url -o /dev/null $url -o /dev/null $url"
    rec wget pipe 'wget --version' "wget --limit-rate 12M -O /dev/null $url"
    rec wget-bar-pty pty 'wget --version' "wget --limit-rate 8M -O /dev/null $url"
    rec wget-dot-mega pipe 'wget --version' "wget --progress=dot:mega -O /dev/null $url; wget --progress=dot:binary -O /dev/null $url" 300000
    rec wget-recursive pipe 'wget --version' "wget -r -l 2 -nv -np -P $W/dl http://127.0.0.1:8088/doc/adduser/ http://127.0.0.1:8088/doc/apt/ http://127.0.0.1:8088/doc/bash/; wget --spider -d http://127.0.0.1:8088/none"
    rec aria2c-pty pty 'aria2c --version' "aria2c --max-download-limit=8M --allow-overwrite=true -d $W/dl $url"
    rec aria2c pipe 'aria2c --version' "aria2c --summary-interval=1 --max-download-limit=6M --console-log-level=info --allow-overwrite=true -d $W/dl $url" 300000
    rec httpie-pty pty 'http --version' "http --download -o /dev/null 127.0.0.1:8088/big.bin; http -v 127.0.0.1:8088/none"
    rec ab pipe 'ab -V' 'ab -v 2 -n 300 -c 4 http://127.0.0.1:8088/none; ab -n 20000 -c 8 http://127.0.0.1:8088/gone; ab -n 5000 -c 2 http://127.0.0.1:8088/doc/bash/' 300000
    rec wrk pipe 'wrk -v' 'wrk -t2 -c16 -d4s --latency http://127.0.0.1:8088/gone; wrk -t1 -c4 -d2s http://127.0.0.1:8088/none'
    rec nginx-access-log pipe 'nginx -v' "for p in /usr/share/doc/[a-l]*; do curl -s -o /dev/null -A \"probe/\$RANDOM\" http://127.0.0.1:8088/doc/\${p##*/}/ -o /dev/null http://127.0.0.1:8088/doc/\${p##*/}/copyright; done; tail -n 4000 $W/access.log" 500000
    rec nginx-json-log pipe 'nginx -v' "tail -n 2000 $W/access-json.log" 400000
    rec nginx-error-log pipe 'nginx -v' "nginx -T -c $W/nginx.conf; tail -n 1500 $W/nginx-error.log" 300000
    rec python-http-server pipe 'python3 -V' "cd /usr/share/doc && (timeout 12 python3 -u -m http.server -b 127.0.0.1 8099 & sleep 1; for p in [a-g]*; do curl -s -o /dev/null http://127.0.0.1:8099/\$p/ -o /dev/null http://127.0.0.1:8099/\$p/copyright -o /dev/null http://127.0.0.1:8099/\$p/none; done; wait)" 300000
    kill "$(cat $W/nginx.pid)"
    rec iperf3 pipe 'iperf3 --version' "unshare -n bash -c 'ip link set lo up; iperf3 -s -1 -p 5999 & sleep 1; iperf3 -c 127.0.0.1 -p 5999 -t 15 -i 0.5; iperf3 -s -1 -p 5998 & sleep 1; iperf3 -c 127.0.0.1 -p 5998 -u -b 50M -t 4 -J; wait'"
    rec ip-ss pipe 'ip -V' "unshare -n bash -c 'ip link set lo up; ip link add a0 type dummy; ip addr add 192.0.2.7/24 dev a0; ip link set a0 up; ip -s -d a; ip route show table all; ss -s; ss -tulpane; cat /proc/net/snmp /proc/net/netstat; ping -c 40 -i 0.2 127.0.0.1'"
    rec rsync-progress-pty pty 'rsync --version' "rsync -a --progress --bwlimit=40M $W/www $W/venv/lib/python3.11/site-packages/networkx $W/rs1" 400000
    rec rsync-info pipe 'rsync --version' "rsync -ai --stats --info=progress2,name1 $W/www $W/venv/lib/python3.11/site-packages/sympy $W/rs2" 400000
    rec pv-pty pty 'pv --version' "pv -L 12M $W/www/big.bin >/dev/null; pv -n -L 30M $W/www/big.bin >/dev/null; (cat $W/www/big.bin | pv -trabL 20M -N scp >/dev/null)"
    local git=$W/git; rm -rf $git; mkdir $git
    rec git-clone-pty pty 'git --version' "git clone --no-local file://$GIT_REPO $git/a"
    rec git-clone-progress pipe 'git --version' "git clone --progress --no-local --mirror file://$GIT_REPO $git/b; cd $git/b; git repack -adf --progress 2>&1; git fsck --progress; git commit-graph write --progress; git multi-pack-index write --progress"
    rec git-gc-pty pty 'git --version' "cd $git/a; git gc --aggressive; git fsck; git fetch --progress file://$GIT_REPO '+refs/*:refs/x/*'; git checkout -q --detach; git prune --progress; git count-objects -vH"
    rec git-log-stat pipe 'git --version' "git -C $git/a log --stat" 500000
    rec git-log-patch pipe 'git --version' "git -C $git/a log -p -- '*.c' '*.h'" 900000
    local format='--format=commit %h%n%cd%n%n%w(0,4,4)%B'
    rec git-log-project pipe 'git --version' "cd $HERE/../..; git log --stat '$format' | head -c 220000; git log -p '$format' -- Cargo.lock src/sys src/nvml" 500000
    rec git-log-graph-pty pty 'git --version' "git -C $git/a log --graph --oneline --color; git -C $git/a shortlog -sn; git -C $git/a for-each-ref; git -C $git/a log --numstat --oneline -n 300" 300000
    rec git-blame pipe 'git --version' "cd $git/a; git blame -s Makefile.in Cargo.toml 2>/dev/null || git blame -s inflate.c; git ls-tree -rl HEAD; git ls-files -s --eol; git grep -n include" 400000
    rec git-trace pipe 'git --version' "cd $git/a; GIT_TRACE=1 GIT_TRACE_PERFORMANCE=1 GIT_TRACE_PACKET=1 git fetch file://$GIT_REPO; touch x; git status; git bisect start HEAD HEAD~200; git bisect run false; git rebase HEAD~3" 300000
}

group_system() {
    local ns='unshare -p -n -f --mount-proc bash -c'
    rec dmesg pipe 'dmesg --version' "dmesg | grep -viE 'Linux version|builder|DMI:|command line|hypervisor|kvm|firecracker|virtio|BIOS|smpboot: CPU|mac|cloud'" 300000
    rec ls-lr pipe 'ls --version' 'ls -lR /usr/share /usr/include' 800000
    rec ls-color-pty pty 'ls --version' 'ls -laRF --color /usr/lib/gcc /usr/lib/git-core /usr/lib/perl /usr/share/perl /etc/alternatives' 300000
    rec find-ls pipe 'find --version' 'find /usr/lib -xdev -ls' 700000
    rec du pipe 'du --version' 'du -a --time /usr/share; df -h /usr | tail -1 | cut -c11-' 500000
    rec tree-pty pty 'tree --version' 'tree -C -h /usr/share/perl5 /usr/share/doc' 400000
    rec ps-top pipe 'ps --version' "$ns 'make -C $W/src/lua-5*/ clean >/dev/null; make -j2 -C $W/src/lua-5*/ linux >/dev/null 2>&1 & for i in 1 2 3 4 5 6; do ps auxwwf; ps -eLo pid,tid,pcpu,pmem,stat,wchan:20,etime,cmd; sleep 1; done; top -b -n 12 -d 0.5 | grep -v \"^MiB\"'" 300000
    rec top-pty pty 'ps --version' "$ns 'make -C $W/src/zlib-*/ clean >/dev/null; make -j2 -C $W/src/zlib-*/ >/dev/null 2>&1 & top -n 20 -d 0.4'" 300000
    rec watch-pty pty 'watch --version' "$ns 'timeout --foreground 12 watch -d -n 0.5 \"date; ps aux; ls -l /tmp/ordinary/src\"'" 300000
    rec vmstat pipe 'vmstat --version' 'vmstat 1 20; vmstat -s | tail -12; vmstat -m 2>/dev/null | head -50; free -s 1 -c 10'
    rec iostat pipe 'iostat -V' 'iostat -x 1 12; mpstat -P ALL 1 8; pidstat 1 4 | grep -v UID'
    rec sar pipe 'sar -V' 'sar -A 1 5' 300000
    rec lsof pipe 'lsof -v 2>&1 | sed -n "s/revision:/lsof/p"' "$ns 'ulimit -n 1024; sleep 3 & python3 -c \"import sqlite3, ssl, time; time.sleep(2)\" & sleep 1; for i in 1 2 3; do lsof -nw; done'" 300000
    rec strace pipe 'strace -V' 'strace -f -tt -T -y python3 -c "import json, decimal"' 500000
    rec strace-count pipe 'strace -V' 'strace -c -f make -C /tmp/ordinary/src/zlib-*/ clean; strace -c -f find /usr/share -name x; ltrace -V; time -v ls /usr/bin >/dev/null; /usr/bin/time -v sort /usr/share/dict/words /etc/services'
    rec journalctl pipe 'journalctl --version' 'for i in $(seq 5); do journalctl --no-pager -n 5; done; systemd-analyze --version; systemctl --version; systemd-analyze calendar --iterations=60 "*-*-* *:0/7" daily "Mon *-*-* 02:30"; systemd-analyze syscall-filter; systemd-analyze exit-status; systemd-analyze capability' 300000
    rec proc-files pipe 'uname -s; echo Linux 6' 'for i in 1 2 3; do cat /proc/meminfo /proc/vmstat /proc/interrupts /proc/schedstat /proc/zoneinfo; sleep 1; done; cat /proc/filesystems /proc/crypto /proc/self/smaps' 400000
    rec mkfs-e2fsck-pty pty 'mke2fs -V' "truncate -s 4G $W/fs.img; mkfs.ext4 -F -v $W/fs.img; e2fsck -f -v -C 0 $W/fs.img; tune2fs -l $W/fs.img | grep -v UUID; resize2fs -p $W/fs.img 3G; badblocks -sv $W/fs.img 200000; rm $W/fs.img"
    rec dumpe2fs pipe 'dumpe2fs -V' "truncate -s 20G $W/fs2.img; mkfs.ext4 -F -q $W/fs2.img; dumpe2fs $W/fs2.img; rm $W/fs2.img" 200000
    rec dd-pty pty 'dd --version' 'dd if=/dev/zero of=/dev/null bs=1M count=150000 status=progress; dd if=/dev/urandom bs=64k count=120000 status=progress of=/dev/null'
    rec shred-pty pty 'shred --version' "head -c 200000000 /dev/zero >$W/s.bin; shred -v -n 4 -z -u $W/s.bin"
    rec openssl-misc pipe 'openssl version' 'openssl dhparam -text 1024; openssl genrsa -verbose 4096; openssl x509 -in /etc/ssl/certs/ca-certificates.crt -noout -text; openssl ciphers -v ALL; openssl list -commands' 200000
    rec locale-zdump pipe 'zdump --version' 'for z in Europe/Paris America/New_York Asia/Tokyo; do zdump -v $z; done; locale -k LC_TIME; getconf -a; cal -y 2024; ncal 2024; sysctl -a 2>/dev/null | grep -E "^(net.ipv4.tcp|vm|fs.inotify)"' 400000
}

group_bench() {
    rec openssl-speed pipe 'openssl version' 'openssl speed -seconds 1 sha256 md5 aes-128-cbc rsa2048 ecdsap256 ed25519; openssl speed -seconds 1 -evp aes-256-gcm' 200000 200
    rec sysbench pipe 'sysbench --version' 'sysbench cpu --time=6 --report-interval=1 --threads=2 run; sysbench memory --time=4 --report-interval=1 run; cd /tmp/ordinary && sysbench fileio --file-total-size=64M --file-num=32 prepare; sysbench fileio --file-total-size=64M --file-num=32 --file-test-mode=rndrw --time=5 --report-interval=1 run; sysbench fileio --file-num=32 cleanup'
    rec stress-ng pipe 'stress-ng --version' 'stress-ng --seq 1 -t 1 --class cpu-cache --metrics-brief -v; stress-ng --cpu 2 --vm 1 --vm-bytes 64M -t 5 --metrics --times -v' 200000 120
    rec fio-pty pty 'fio --version' "cd $W && fio --name=mix --size=100M --rw=randrw --bs=4k --runtime=12 --time_based --eta=always --eta-newline=1 --filename=$W/fio.bin; rm $W/fio.bin"
    rec fio pipe 'fio --version' "cd $W && for rw in read write randread; do fio --name=\$rw --size=64M --rw=\$rw --bs=16k --filename=$W/fio.bin --status-interval=1 --runtime=4 --time_based; done; fio --name=j --size=32M --rw=randwrite --output-format=json+ --filename=$W/fio.bin" 300000
    rec hyperfine-pty pty 'hyperfine --version' "hyperfine -w 2 -r 25 'ls -lR /usr/share/doc' 'find /usr/share -name x' 'python3 -c pass'"
    rec hyperfine pipe 'hyperfine --version' "hyperfine -P n 1 12 'seq {n}0000' --export-markdown /dev/stdout"
    rec sqlite3 pipe 'sqlite3 --version' "sqlite3 :memory: \".eqp full\" \".timer on\" \".mode box\" \"create table a(i integer primary key, x real, t text); create index ax on a(x); with recursive c(n) as (select 1 union all select n+1 from c where n<4000) insert into a select n, n*7919%1009/10.0, printf('row %05d', n) from c;\" \"select * from a where x > 50 order by t limit 900;\" \"select x, count(*), avg(i) from a group by x having count(*) > 3;\" \"explain select * from a join a b using(x) where a.i < b.i;\" \".dump a\"" 400000
    local pg=$W/pg
    rm -rf $pg; mkdir $pg; chown postgres $pg 2>/dev/null; chmod 755 $W
    local as='setpriv --reuid=postgres --regid=postgres --clear-groups --inh-caps=-all env HOME=/tmp/ordinary/pg'
    rec postgres-initdb pipe 'postgres --version' "cd $pg && $as initdb -D $pg/d && $as pg_ctl -D $pg/d -w -l $pg/log -o '-k $pg -h 127.0.0.1 -p 5999 -c log_statement=all -c log_duration=on -c log_checkpoints=on -c log_autovacuum_min_duration=0' start"
    rec pgbench pipe 'pgbench --version' "cd $pg && $as pgbench -i -s 10 -h $pg -p 5999 postgres; $as pgbench -P 1 -T 20 -c 4 -j 2 -r -h $pg -p 5999 postgres; $as pgbench -S -P 1 -T 5 -h $pg -p 5999 postgres"
    rec psql-explain pipe 'psql --version' "cd $pg && $as psql -h $pg -p 5999 -a -e postgres -c '\\timing' -c 'explain (analyze, buffers, verbose) select b.bid, count(*), sum(a.abalance) from pgbench_accounts a join pgbench_branches b using (bid) group by 1 order by 2' -c 'explain (analyze, format json) select * from pgbench_history h join pgbench_tellers t using (tid) where delta > 0' -c 'vacuum verbose' -c 'select * from pgbench_accounts order by aid limit 2000' -c 'select name, setting, unit, short_desc from pg_settings' -c 'select * from nothing'" 400000
    rec postgres-log pipe 'postgres --version' "tail -n 4000 $pg/log" 400000
    $as pg_ctl -D $pg/d -m fast stop >/dev/null 2>&1
    rec redis-benchmark pipe 'redis-server --version' "redis-server --port 0 --unixsocket $W/redis.sock --save 2 100 --dir $W --loglevel debug & sleep 1; redis-benchmark -s $W/redis.sock -n 40000 -t set,get,lpush,lrange_300; redis-cli -s $W/redis.sock info all | grep -vE 'hostname|os:|executable|config_file'; redis-cli -s $W/redis.sock shutdown; wait" 300000
    rec redis-benchmark-pty pty 'redis-server --version' "redis-server --port 0 --unixsocket $W/redis2.sock --dir $W >/dev/null & sleep 1; redis-benchmark -s $W/redis2.sock -n 60000 -t set,get,mset -P 4; redis-cli -s $W/redis2.sock --latency-history -i 1 & sleep 3; kill %2; redis-cli -s $W/redis2.sock shutdown nosave" 300000
    rec memtester pipe 'memtester 2>&1' 'memtester 8M 2' 300000 60
    rec memtester-pty pty 'memtester 2>&1' 'memtester 4M 1' 300000 60
    rec glpsol pipe 'glpsol --version' "cd $W && python3 -c 'import random; random.seed(4); n = 60; print(\"Maximize\\n obj: \" + \" + \".join(f\"{random.randint(5, 60)} x{i}\" for i in range(n))); print(\"Subject To\"); [print(f\" c{j}: \" + \" + \".join(f\"{random.randint(1, 40)} x{i}\" for i in range(n)) + \" <= 700\") for j in range(12)]; print(\"Bounds\"); [print(f\" x{i} <= 3\") for i in range(n)]; print(\"General\\n\" + \" \".join(f\"x{i}\" for i in range(n)) + \"\\nEnd\")' >p.lp; glpsol --lp p.lp --tmlim 25 --cuts --log /dev/null; glpsol --lp p.lp --nomip -w /dev/stdout" 200000
    rec minisat pipe "$(dpkgv minisat)" "cd $W && python3 -c 'import random; random.seed(2); n, m = 220, 937; print(\"p cnf\", n, m); [print(*(random.choice((-1, 1)) * v for v in random.sample(range(1, n + 1), 3)), 0) for _ in range(m)]' >p.cnf; minisat -verb=2 p.cnf"
    rec stockfish pipe 'echo | stockfish' "(echo uci; echo 'position startpos moves e2e4 e7e5 g1f3'; echo 'go depth 20'; sleep 25; echo 'go perft 3'; echo d; echo eval; sleep 2; echo bench 16 1 9; sleep 10; echo quit) | stockfish" 200000 60
    rec mafft pipe 'mafft --version 2>&1' "cd $W && python3 -c 'import random; random.seed(3); a = [random.choice(\"ACDEFGHIKLMNPQRSTVWY\") for _ in range(160)]; [print(f\">s{i}\\n\" + \"\".join(c if random.random() < .75 else random.choice(\"ACDEFGHIKLMNPQRSTVWY\") for c in a)) for i in range(60)]' >s.fa; mafft --anysymbol --localpair --maxiterate 20 s.fa; mafft --anysymbol --retree 2 s.fa" 200000
    rec mafft-pty pty 'mafft --version' "cd $W && mafft --anysymbol --globalpair --maxiterate 10 s.fa >/dev/null" 200000
    rec lammps pipe "$(dpkgv lammps)" "cd $W && printf 'units lj\natom_style atomic\nlattice fcc 0.8442\nregion box block 0 6 0 6 0 6\ncreate_box 1 box\ncreate_atoms 1 box\nmass 1 1.0\nvelocity all create 3.0 87287\npair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5\nfix 1 all nve\nthermo 20\nrun 3000\n' >in.lj; lmp -in in.lj" 200000
}

group_data() {
    rec tar-verbose pipe 'tar --version' "tar -cvvf /dev/null /usr/share/perl5 /usr/include; tar --checkpoint=500 --checkpoint-action='echo=#%u: %T' -cf - /usr/share | wc -c" 500000
    rec zip pipe 'zip -v | sed -n 2p' "cd /usr/share && zip -r -dc -dd $W/z.zip perl5; unzip -v $W/z.zip; unzip -o $W/z.zip -d $W/unz" 500000
    rec zip-pty pty 'zip -v | sed -n 2p' "cd /usr/share && zip -r -dc -db -dv $W/z2.zip perl5 man" 300000
    rec 7z-pty pty '7z i' "7z a -bb1 -mx=5 $W/z.7z /usr/share/doc/g* /usr/include $W/www/big.bin; 7z t $W/z.7z; 7z b 1" 300000
    rec 7z pipe '7z i' "7z a -mx=1 $W/zz.7z /usr/share/doc/g* /usr/include >/dev/null; 7z l $W/zz.7z | head -1500; 7z x -y -bsp1 -bb1 -o$W/un7 $W/zz.7z" 400000
    rec compressors-pty pty 'zstd --version' "cd $W && cp www/big.bin c.bin; zstd -v -10 c.bin; xz -v -0 -k c.bin; gzip -v c.bin; pigz -lv c.bin.gz; xz -lvv c.bin.xz; bzip2 -v -k c.bin.xz; zstd -b1 -e8 -i1 /usr/bin/git; rm c.bin*"
    rec mksquashfs-pty pty 'mksquashfs -version' "mksquashfs /usr/share/doc /usr/include $W/a.sqfs -noappend -comp gzip" 500000
    rec unsquashfs pipe 'unsquashfs -version' "unsquashfs -ll $W/a.sqfs; unsquashfs -f -d $W/unsq $W/a.sqfs" 300000
    rec genisoimage pipe 'genisoimage --version' "genisoimage -v -R -J -o $W/a.iso /usr/share/perl5 $W/www" 300000
    rec restic-pty pty 'restic version' "export RESTIC_PASSWORD=x RESTIC_CACHE_DIR=$W/rc; restic init -r $W/restic; restic -r $W/restic backup --verbose /usr/include /usr/share/perl5; restic -r $W/restic check --read-data; restic -r $W/restic snapshots; restic -r $W/restic prune"
    rec restic-json pipe 'restic version' "export RESTIC_PASSWORD=x RESTIC_CACHE_DIR=$W/rc RESTIC_PROGRESS_FPS=10; restic -r $W/restic backup --json -v -v /usr/share/doc/[a-g]* $W/www; restic -r $W/restic ls latest -l" 400000
    rec borg-pty pty 'borg --version' "export BORG_BASE_DIR=$W/bb BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes; borg init -e none $W/borg; borg create --progress --stats $W/borg::one /usr/include /usr/share/perl5 $W/www; borg check -v --progress $W/borg; borg info $W/borg::one"
    rec borg-list pipe 'borg --version' "export BORG_BASE_DIR=$W/bb BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes; borg create -v --list --stats --show-rc $W/borg::two /usr/share/doc; borg compact --verbose $W/borg; borg diff $W/borg::one two" 300000
    rec rclone-pty pty 'rclone version' "rclone --config /dev/null copy --progress --stats 300ms --bwlimit 20M $W/www $W/rcl; rclone --config /dev/null check -P $W/www $W/rcl" 300000
    rec rclone-log pipe 'rclone version' "rclone --config /dev/null copy -vv --stats 1s --stats-one-line /usr/share/perl5 $W/rcl2" 400000
    rec parallel-pty pty 'parallel --version' 'mkdir -p /tmp/ordinary/par; HOME=/tmp/ordinary/par parallel --will-cite --bar -j2 "sleep 0.05; echo {} | md5sum" ::: $(seq 150); HOME=/tmp/ordinary/par parallel --will-cite --progress --eta -j2 "sleep 0.1" ::: $(seq 60)'
    local clip="-f lavfi -i testsrc=size=640x360:rate=30:duration=60 -f lavfi -i sine=frequency=440:duration=60"
    rec ffmpeg pipe 'ffmpeg -version' "ffmpeg -y $clip -c:v mpeg4 -b:v 800k $W/clip.mp4; ffmpeg -nostdin -y -loglevel verbose -i $W/clip.mp4 -c:v libx264 -preset ultrafast -progress - $W/clip2.mkv" 300000
    rec ffmpeg-pty pty 'ffmpeg -version' "ffmpeg -nostdin -y -stats_period 0.1 -i $W/clip.mp4 -c:v libx264 -preset veryfast -pass 1 -passlogfile $W/p -f null /dev/null; ffmpeg -nostdin -y -i $W/clip.mp4 -vn $W/a.wav"
    rec ffmpeg-filters pipe 'ffmpeg -version' "ffmpeg -nostdin -i $W/clip.mp4 -t 8 -vf showinfo,blackdetect,signalstats,metadata=print -af ebur128=metadata=1,ashowinfo -f null -; ffmpeg -codecs; ffmpeg -h full" 500000
    rec ffprobe pipe 'ffprobe -version' "ffprobe -show_frames -show_packets -show_format -show_streams -of default $W/clip.mp4" 400000
    rec ffprobe-json pipe 'ffprobe -version' "ffprobe -v trace -show_packets -of json $W/clip.mp4; ffprobe -show_frames -of csv $W/clip.mp4" 300000
    rec sox-pty pty 'sox --version' "sox -S -V4 $W/a.wav $W/b.flac speed 1.3 reverb; sox $W/a.wav -n stat; sox $W/a.wav -n stats spectrogram -o $W/s.png"
    rec imagemagick-monitor pipe 'convert -version' "cd $W && convert -monitor -size 500x400 plasma:fractal -blur 0x4 -rotate 30 -resize 150% p.png; identify -verbose p.png; convert p.png -crop 60x40+0+0 txt:-" 400000
    rec povray-pty pty 'povray --version 2>&1 | grep -i "POV-Ray [0-9v]"' "cd $W && printf 'camera { location <0,2,-6> look_at 0 } light_source { <5,9,-8> 1 } plane { y, -1 pigment { checker rgb 1 rgb 0 } finish { reflection .4 } } sphere { 0, 1 pigment { rgb <1,0,0> } finish { phong 1 reflection .3 } }\n' >s.pov; povray +Is.pov +Os.png +W900 +H700 +A0.1 -D +V +WT1" 300000
    rec csv-dump pipe 'echo sqlite3 $(sqlite3 --version)' "sqlite3 -csv -header :memory: \"with recursive c(n) as (select 0 union all select n+1 from c where n<9000) select n as id, datetime(1700000000+n*937, 'unixepoch') as at, printf('%.3f', abs(n*7919%1009)/7.0) as price, n%17 as qty, substr(hex(n*104729), 1, 8) as sku, round(n/9000.0, 4) as share from c\"" 500000
    rec csv-python-stats pipe 'python3 -V' "python - <<'P'
import pandas as pd, numpy as np
pd.set_option('display.width', 120, 'display.max_rows', 400)
r = np.random.default_rng(1)
d = pd.DataFrame({'day': pd.date_range('2023-01-01', periods=365), 'sales': r.gamma(2, 50, 365).round(2), 'visits': r.poisson(300, 365), 'region': r.choice(list('NSEW'), 365)})
print(d.head(300)); print(d.describe()); d.info(verbose=True); print(d.groupby('region').agg(['mean', 'std', 'max']))
print(d.pivot_table(index=d.day.dt.month, columns='region', values='sales', aggfunc='sum')); print(d.to_csv()); print(d.to_json(orient='records', lines=True)); print(d.head(40).to_markdown() if 0 else d.head(40).to_html())
print(np.array2string(r.normal(size=(60, 8)), precision=4)); print(d.corr(numeric_only=True))
P"
    rec jq-json pipe 'jq --version' "ffprobe -v quiet -of json -show_packets $W/clip.mp4 | jq '.packets[:900]'; ip -V; jq -n '[range(400) | {id: ., name: \"item-\\(.)\", ratio: (. / 7), tags: [. % 3, . % 5]}]'; jq -nc 'range(1500) | {ts: (1700000000 + . * 13), level: ([\"info\", \"warn\"][. % 2]), n: .}'" 400000
    rec hexdump pipe 'hexdump --version' 'hexdump -C /usr/bin/true | head -1500; od -A d -t x2z /usr/bin/true | head -1000; sha256sum /usr/bin/[a-g]*; cksum /usr/bin/[h-p]*' 250000
    rec sort-diff pipe 'diff --version' "diff -u /usr/share/perl5/CPAN.pm /usr/share/perl/5.36.0/CPAN.pm | head -300; diff -ru $W/src/zlib-*/ $W/src/lua-5*/; diff -y -W 120 $W/src/zlib-*/deflate.c $W/src/zlib-*/inflate.c; md5sum -c $(ls /var/lib/dpkg/info/perl*.md5sums | head -1); comm /etc/services /etc/protocols" 600000
    rec bc-seq pipe 'bc --version' 'seq 1 6000; seq -f "%05.1f%%" 0 0.5 100; echo "scale=600; 4*a(1)" | bc -l; for i in $(seq 200); do echo "$i/200"; done; factor $(seq 1000000 1000900); for i in $(seq 1 80); do printf "\rwaiting %d s" $i; done; echo'
}

group_docs() {
    rec changelogs pipe "$(dpkgv gzip)" 'zcat /usr/share/doc/*/changelog.Debian.gz' 900000
    rec upstream-changelogs pipe "$(dpkgv gzip)" 'for f in $(ls -S /usr/share/doc/*/changelog.gz | head -60); do zcat $f | head -c 15000; done' 700000
    rec news pipe "$(dpkgv gzip)" 'zcat /usr/share/doc/*/NEWS*.gz /usr/share/doc/*/README*.gz' 600000
    rec man-bash pipe 'man --version' 'man -P cat bash' 500000
    rec man-pty pty 'man --version' 'for p in rsync git-log curl ffmpeg tar; do MANWIDTH=100 man -P cat $p; done' 500000
    rec copyrights pipe "$(dpkgv coreutils)" 'cat /usr/share/doc/*/copyright' 500000
    rec help-texts pipe "$(dpkgv coreutils)" 'for p in ls tar git gcc ld rsync curl wget find grep sed gawk fio nginx psql pgbench pip pytest cmake ctest ninja make openssl; do echo "== $p"; $p --help; done; curl --help all; gcc --help=optimizers,params; cmake --help-full' 600000
    rec gawk-report pipe 'gawk --version' "gawk -F: '{ printf \"%-30s %5d %6.2f%%\\n\", \$1, NR, 100 * NR / 600 }' /etc/services; dpkg-query -W -f '\${Installed-Size} \${Package}\n' | sort -rn | gawk '{ s += \$1; printf \"%4d/%d %-40s %10d %12d\\n\", NR, 886, \$2, \$1, s }'"
    rec perl-config pipe 'perl -v' 'perl -V; perl -MConfig -e "print Config::config_sh()"; perldoc -T perlfunc 2>/dev/null || perl -MO=Concise -e "print map { \$_ * 2 } 1..9"; perl -MO=Concise,-exec /usr/bin/prove' 300000
    rec bash-xtrace pipe 'bash --version' "cd $W/src/hello-*/ && bash -x ./configure" 500000
}

readme() {
    local f
    {
        echo '# Output of ordinary programs'
        echo
        echo 'Real output of programs that train nothing, recorded as raw bytes with its control characters and'
        echo 'redraws, for tests that training progress is not seen where there is none. `record.sh` made the'
        echo 'recordings on Debian 12; each is one `zstd -19` file. "pty" was a terminal of 120 columns and 40'
        echo 'rows, "pipe" a pipe with both standard output and standard error. Paths, host and registry names,'
        echo 'mail addresses, the kernel version and the CPU model were replaced (`/job`, `node01`, `example.org`);'
        echo 'nothing else was changed. "part" says whether all of the output was kept. The repository of the git'
        echo 'recordings is zlib, but for `git-log-project`, which is this project itself. Hardest are those that show real progress, but not of a training:'
        echo '`tqdm-*` and `rich-demo-*` (bars), `lammps` and `mafft*` (steps), `snakemake*`, `glpsol`, `minisat`.'
        echo
        echo '| name | program | command | form | part | bytes | lines |'
        echo '|---|---|---|---|---|---:|---:|'
        for f in $W/meta/*; do
            [[ -e $HERE/${f##*/}.zst ]] || continue
            scrub <"$f" | gawk -F'\t' -v OFS=' | ' -v size="$(zstdcat "$HERE/${f##*/}.zst" | wc -lc)" '{ split(size, s, " "); c = $3; gsub(/\|/, "\\|", c); gsub(/`/, "", c); gsub(/\|/, "/", $2)
                if (length(c) > 260) c = substr(c, 1, 260) " ..."; print "| " $1, $2, "`" c "`", $4, $5, s[2], s[1] " |" }'
        done
        echo
        zstdcat "$HERE"/*.zst | wc -lc | { read -r lines bytes; set -- "$HERE"/*.zst; echo "$# recordings, $bytes bytes, $lines lines."; }
    } >"$HERE/README.md"
}

(($#)) || { sed -n '2,13p' "$0"; exit 2; }
[[ $1 == all ]] && set -- apt build rust python lint npm go net system bench data docs readme
for g; do
    case $g in
        readme) readme ;;
        store) for f in $W/raw/*; do store "$f"; done ;;
        *) "group_$g" ;;
    esac
done
exit
