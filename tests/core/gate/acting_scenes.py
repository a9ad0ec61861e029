"""One file of each kind that acts by itself, and the scenes that show it on the tool that takes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MARK: Final = "MARK"
"""What a file that acted leaves in the tool's output."""

SAMPLES: Final[Mapping[str, str]] = {
    "gnumakefile": "GNUmakefile", "makefile": "makefile", "make-part": "rules.mk", "cmake": "CMakeLists.txt",
    "cmake-presets": "CMakeUserPresets.json", "ctest": "CTestTestfile.cmake", "ninja": "build.ninja",
    "meson": "meson.build", "debian-rules": "debian/rules", "bazel": "BUILD", "scons": "SConstruct",
    "task-runner": "Justfile", "nix": "shell.nix", "build-rs": "build.rs", "cargo-manifest": "Cargo.toml",
    "cargo-lock": "Cargo.lock", "cargo-targets": "tests/all.rs", "cargo-config": ".cargo/config.toml",
    "rust-toolchain": "rust-toolchain.toml", "maven": "pom.xml", "maven-config": ".mvn/jvm.config",
    "gradle": "build.gradle", "ant": "build.xml", "go": "go.mod", "setup-py": "setup.py", "setup-cfg": "setup.cfg",
    "pyproject": "pyproject.toml", "conftest": "src/conftest.py", "pytest-ini": "pytest.ini", "tox-ini": "tox.ini",
    "python-tests": "tests/test_more.py", "sitecustomize": "sitecustomize.py", "usercustomize": "usercustomize.py",
    "pth": "lib/more.pth", "standard-module": "json.py", "known-package": "yaml.py",
    "package-init": "src/__init__.py", "package-main": "src/__main__.py",
    "compiled-python": "src/__pycache__/main.cpython-311.pyc", "library": "fast.so", "mypy": "mypy.ini",
    "ruff": "ruff.toml", "coverage": ".coveragerc", "pdb": ".pdbrc", "pip-config": "venv/pip.conf",
    "python-locks": "uv.lock", "pyvenv": "venv/pyvenv.cfg", "python-tasks": "noxfile.py", "pylint": "pylintrc",
    "mkdocs": "mkdocs.yml", "sphinx": "docs/conf.py", "alembic": "alembic.ini", "python-servers": "gunicorn.conf.py",
    "python-version": ".python-version", "package-json": "package.json", "node-locks": "package-lock.json",
    "npmrc": ".npmrc", "node-modules": "node_modules/left/index.js", "node-tests": "src/sum.test.js",
    "node-configuration": "vite.config.ts", "deno": "deno.json", "php": "composer.json", "perl-tests": "t/all.t",
    "perl-build": "Makefile.PL", "ruby": "Rakefile", "other-languages": "mix.exs", "git-folder": "docs/.git",
    "git-head": "docs/HEAD", "git-bare": "mine.git/hooks/update", "git-attributes": ".gitattributes",
    "git-modules": ".gitmodules", "git-settings": ".gitconfig", "hooks-of-tools": ".pre-commit-config.yaml",
    "pipelines": ".github/workflows/all.yml", "shell-start": ".bashrc", "login-start": ".profile",
    "direnv": ".envrc", "environment": ".env", "vim": ".vimrc", "emacs": ".dir-locals.el",
    "editors": ".vscode/tasks.json", "gdb": ".gdbinit", "lldb": ".lldbinit", "ctags": ".ctags.d/all.ctags",
    "clang": ".clangd", "agents": "AGENTS.md", "curl": ".curlrc", "wget": ".wgetrc", "sqlite": ".sqliterc",
    "psql": ".psqlrc", "tmux": ".tmux.conf", "ssh": ".ssh/config", "home-settings": ".config/app/settings",
    "executable": "bin/tool", "windows": "git.exe", "desktop": "notes.desktop", "services": "notes.service",
    "dockerfile": "Dockerfile", "compose": "compose.yaml", "terraform": "main.tf",
    "terraform-values": "more.auto.tfvars", "kustomize": "kustomization.yaml", "deployments": "Chart.yaml",
    "dot-folder": ".anything/file", "cmake-part": "cmake/FindMore.cmake", "autotools": "configure.ac",
    "native-packages": "conanfile.py", "packagings": "PKGBUILD", "java-wrappers": "gradlew",
    "java-parts": "lib/more.jar", "python-metadata": "more.egg-info/entry_points.txt",
    "migrations": "db/migrate/1_more.rb", "other-tests": "test/test_more.rb", "tex": "article.cls",
    "sites": "_config.yml", "workflows": "Snakefile", "servers": "Caddyfile",
}  # fmt: skip
"""A path of each kind."""


@dataclass(frozen=True)
class Scene:
    """One kind on its tool: `command` says MARK once `added` is there, and not before."""

    kind: str
    command: Sequence[str]
    added: Mapping[str, str | bytes]
    """The files of the stranger. Those that are of the kind are what acts; others are ordinary files that it names."""
    before: Mapping[str, str] = field(default_factory=dict)
    """The person's own files."""
    prepare: Sequence[Sequence[str]] = ()
    """Commands that the person had run before."""
    home: bool = False
    """Whether the folder is the person's home."""
    sign: str = MARK
    environment: Mapping[str, str] = field(default_factory=dict)

    def lay(self, folder: Path, files: Mapping[str, str | bytes]) -> None:
        """Write files into the folder; those that begin like a script can be run."""
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            if isinstance(content, str) and content.startswith("#!"):
                path.chmod(0o755)

    def run(self, folder: Path, command: Sequence[str]) -> str:
        """What a command prints, and the name of every file that it leaves with MARK in it."""
        home = folder if self.home else folder.parent / "home"
        home.mkdir(exist_ok=True)
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYENV_ROOT") if name in os.environ}
        environment = {
            **kept, "HOME": str(home), "TERM": "dumb", "RUSTUP_HOME": _rustup(), "CARGO_HOME": str(folder.parent / "c"),
            "PYTHONDONTWRITEBYTECODE": "1", "CHECKPOINT_DISABLE": "1", "DENO_DIR": str(folder.parent / "deno"),
            "GIT_CONFIG_NOSYSTEM": "1", "TMUX_TMPDIR": str(folder.parent), **self.environment,
        }  # fmt: skip
        ran = subprocess.run(
            [part.format(folder=folder, **_PLACES) for part in command],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        left = " ".join(path.name for path in folder.rglob("*MARK*"))
        return f"{ran.stdout}\n{ran.stderr}\n{left}"


def _rustup() -> str:
    return os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")


def tool_of(scene: Scene) -> str | None:
    """Where the scene's tool is on this machine; None if it isn't here."""
    first = scene.command[0]
    if first in ("{python}", "{base}"):
        return sys.executable
    if first.startswith("{bin}"):
        path = Path(sys.executable).parent / first.removeprefix("{bin}/")
        return str(path) if path.exists() else None
    return shutil.which(first)


_PLACES: Final = {
    "python": sys.executable,
    "base": str(Path(sys.executable).resolve()),
    "bin": str(Path(sys.executable).parent),
}
"""Where Python, the Python below its environment, and the programs beside it are."""

_SAYS: Final = "print('MARK')\n"
_PYTEST: Final = ("{python}", "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider")
_TEST: Final = {"test_mine.py": "def test_mine(): pass\n"}
_CRATE: Final = {
    "Cargo.toml": '[package]\nname = "mine"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/main.rs": "fn main() {}\n",
}
_CARGO: Final = ("cargo", "build", "--offline", "-vv")
_PACKAGE: Final = {"package.json": '{"name": "mine", "version": "1.0.0", "scripts": {"test": "true"}}\n'}
_POM: Final = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId>"
    "<version>1</version><packaging>pom</packaging><name>MARK</name></project>\n"
)
_INIT: Final = (("git", "init", "-q", "."),)
_RUNS: Final = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = echo MARK >&2; false\n"
_REPOSITORY: Final = {"HEAD": "ref: refs/heads/main\n", "objects/x": "", "refs/x": "", "config": _RUNS}


def _compiled(source: str, place: str) -> bytes:
    """A compiled module that Python takes without comparing it with its source."""
    import importlib.util
    import marshal

    code = compile(source, place, "exec")
    # The flag says: no check against the source.
    return importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


def _library() -> bytes:
    """A library that speaks when it is loaded. Empty if there is no compiler."""
    if shutil.which("gcc") is None:
        return b""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "a.c", Path(folder) / "a.so"
        source.write_text(
            '#include <stdio.h>\n__attribute__((constructor)) void on(void) { fputs("MARK\\n", stderr); }\n'
        )
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
        return made.read_bytes()


_VENV: Final = (("{python}", "-m", "venv", "--without-pip", "venv"),)
_IN_VENV: Final = f"venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
_CACHED: Final = f"__pycache__/mod.cpython-{sys.version_info[0]}{sys.version_info[1]}.pyc"


def scenes() -> Sequence[Scene]:
    """Every scene."""
    return (
        # make, cmake and their like
        Scene("gnumakefile", ["make"], {"GNUmakefile": "all:\n\t@echo MARK\n"}, {"Makefile": "all:\n\t@echo mine\n"}),
        Scene("makefile", ["make"], {"makefile": "all:\n\t@echo MARK\n"}, {"Makefile": "all:\n\t@echo mine\n"}),
        Scene("makefile", ["make"], {"Makefile": "all:\n\t@echo MARK\n"}),
        Scene("make-part", ["make"], {"x.mk": "$(info MARK)\n"}, {"Makefile": "-include *.mk\nall:\n\t@true\n"}),
        Scene("cmake", ["cmake", "-S", ".", "-B", "out"],
              {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(x NONE)\nmessage(STATUS MARK)\n"}),
        Scene("cmake-presets", ["cmake", "--list-presets"],
              {"CMakeUserPresets.json": '{"version": 3, "configurePresets": [{"name": "MARK", "generator": "Ninja",'
                                        ' "binaryDir": "out"}]}'},
              {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(x NONE)\n"}),
        Scene("ctest", ["ctest", "-V"], {"CTestTestfile.cmake": "add_test(all sh -c \"echo MARK\")\n"}),
        Scene("ctest", ["ctest", "-V", "-D", "ExperimentalTest"], {"DartConfiguration.tcl": "BuildDirectory: MARK\n"}),
        Scene("cmake-part", ["cmake", "-S", ".", "-B", "out"], {"PreLoad.cmake": "message(STATUS MARK)\n"},
              {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(x NONE)\n"}),
        Scene("make-part", ["make"], {"main.d": "$(info MARK)\n"}, {"Makefile": "-include *.d\nall:\n\t@true\n"}),
        Scene("ninja", ["ninja", "-v"], {"build.ninja": "rule r\n  command = echo MARK\nbuild all: r\n"}),
        Scene("debian-rules", ["dpkg-buildpackage", "-b", "-uc", "-d"],
              {"debian/rules": "#!/bin/sh\necho MARK\n"},
              {"debian/changelog": "mine (1) unstable; urgency=low\n\n  * One.\n\n -- A <a@b.c>  Thu, 01 Jan 2026 00:00:00"
                                   " +0000\n",
               "debian/control": "Source: mine\nMaintainer: A <a@b.c>\n\nPackage: mine\nArchitecture: all\n"
                                 "Description: mine\n"}),
        # Rust, Java
        Scene("build-rs", _CARGO, {"build.rs": 'fn main() { println!("cargo:warning=MARK"); }\n'}, _CRATE),
        Scene("cargo-manifest", ["cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"],
              {"Cargo.toml": _CRATE["Cargo.toml"].replace("mine", "MARK")}, {"src/main.rs": "fn main() {}\n"}),
        Scene("cargo-lock", _CARGO, {"Cargo.lock": "version = 4\n\n[[package]]\nname = \"MARK\n"}, _CRATE),
        Scene("cargo-targets", ["cargo", "test", "--offline"],
              {"tests/all.rs": "#[test]\nfn MARK() {}\n"}, _CRATE),
        Scene("cargo-config", _CARGO, {".cargo/config.toml": '[build]\nrustc-wrapper = "./wrap"\n',
                                       "wrap": '#!/bin/sh\ntouch MARK\nexec "$@"\n'}, _CRATE),
        Scene("rust-toolchain", ["cargo", "--version"], {"rust-toolchain.toml": '[toolchain]\nchannel = "MARK"\n'}),
        Scene("maven", ["mvn", "-o", "-B", "validate"], {"pom.xml": _POM}),
        Scene("maven-config", ["mvn", "-o", "-B", "validate"], {".mvn/jvm.config": "-XX:MARK=1\n"},
              {"pom.xml": _POM.replace("MARK", "mine")}),
        # Python
        Scene("setup-py", ["{python}", "-m", "pip", "install", "-v", "--no-deps", "--no-index", "--no-build-isolation",
                           "--target", "out", "."],
              {"setup.py": "from setuptools import setup\nprint('MARK')\nsetup(name='mine', py_modules=[])\n"}),
        Scene("setup-cfg", _PYTEST, {"setup.cfg": "[tool:pytest]\naddopts = --MARK\n"}, _TEST),
        Scene("pyproject", _PYTEST, {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--MARK"\n'}, _TEST),
        Scene("conftest", _PYTEST, {"conftest.py": _SAYS}, _TEST),
        Scene("conftest", _PYTEST, {"sub/conftest.py": _SAYS}, {**_TEST, "sub/test_mine_too.py": "def test_a(): pass\n"}),
        Scene("pytest-ini", _PYTEST, {"pytest.ini": "[pytest]\naddopts = --MARK\n"},
              {**_TEST, "pyproject.toml": "[tool.pytest.ini_options]\n"}),
        Scene("tox-ini", _PYTEST, {"tox.ini": "[pytest]\naddopts = --MARK\n"}, _TEST),
        Scene("python-tests", _PYTEST, {"test_more.py": _SAYS}, _TEST),
        Scene("python-metadata", _PYTEST,
              {"more.egg-info/entry_points.txt": "[pytest11]\nmore = more\n", "more.egg-info/PKG-INFO":
               "Metadata-Version: 2.1\nName: more\nVersion: 1\n", "more.py": _SAYS}, _TEST),
        Scene("migrations", ["{bin}/alembic", "heads"],
              {"migrations/versions/more.py": _SAYS + "revision = 'a'\ndown_revision = None\n"},
              {"alembic.ini": "[alembic]\nscript_location = migrations\n", "migrations/env.py": "",
               "migrations/versions/README": ""}),
        Scene("sitecustomize", ["{python}", "-c", "pass"], {"sitecustomize.py": _SAYS},
              environment={"PYTHONPATH": "."}),
        Scene("usercustomize", ["{base}", "-c", "pass"], {"usercustomize.py": _SAYS},
              environment={"PYTHONPATH": "."}),
        Scene("pth", ["venv/bin/python", "-c", "pass"], {f"{_IN_VENV}/more.pth": "import sys; print('MARK')\n"},
              prepare=_VENV),
        Scene("standard-module", ["{python}", "main.py"], {"json.py": _SAYS}, {"main.py": "import json\n"}),
        Scene("known-package", ["{python}", "main.py"], {"yaml.py": _SAYS}, {"main.py": "import yaml\n"}),
        Scene("package-init", ["{python}", "main.py"], {"pkg/__init__.py": _SAYS},
              {"main.py": "import pkg.mod\n", "pkg/mod.py": ""}),
        Scene("package-init", ["{python}", "main.py"], {"mod/__init__.py": _SAYS},
              {"main.py": "import mod\n", "mod.py": ""}),
        Scene("package-main", ["{python}", "pkg"], {"pkg/__main__.py": _SAYS}, {"pkg/mod.py": ""}),
        Scene("compiled-python", ["{python}", "main.py"], {_CACHED: _compiled(_SAYS, "mod.py")},
              {"main.py": "import mod\n", "mod.py": ""}),
        Scene("library", ["{python}", "main.py"], {"mod.so": _library()}, {"main.py": "import mod\n", "mod.py": ""}),
        Scene("mypy", ["{bin}/mypy", "--cache-dir", "/dev/null", "mine.py"],
              {"mypy.ini": "[mypy]\nplugins = ./plug.py\n",
               "plug.py": "print('MARK')\nfrom mypy.plugin import Plugin\ndef plugin(version): return Plugin\n"},
              {"mine.py": ""}),
        Scene("ruff", ["{bin}/ruff", "check", "--no-cache", "."], {"ruff.toml": "MARK = 1\n"}, {"mine.py": ""}),
        Scene("coverage", ["{bin}/coverage", "run", "mine.py"],
              {".coveragerc": "[run]\nplugins = plug\n", "plug.py": _SAYS + "def coverage_init(reg, options): pass\n"},
              {"mine.py": ""}, environment={"PYTHONPATH": "."}),
        Scene("pdb", ["{python}", "-m", "pdb", "mine.py"], {".pdbrc": "p 'MA' + 'RK'\n"}, {"mine.py": "a = 1\n"}),
        Scene("pip-config", ["venv/bin/python", "-m", "pip", "config", "list"],
              {"venv/pip.conf": "[global]\nindex-url = http://MARK/\n"},
              prepare=(("{python}", "-m", "venv", "--without-pip", "--system-site-packages", "venv"),
                       ("cp", "-r", "{bin}/../" + _IN_VENV.removeprefix("venv/") + "/pip", _IN_VENV))),
        Scene("mkdocs", ["{bin}/mkdocs", "build"], {"mkdocs.yml": "site_name: x\nhooks: [h.py]\n", "h.py": _SAYS},
              {"docs/index.md": "# x\n"}),
        Scene("alembic", ["{bin}/alembic", "history"], {"alembic.ini": "[alembic]\nscript_location = MARK\n"}),
        Scene("python-version", ["pyenv", "version"], {".python-version": "MARK\n"}),
        # Node, Deno, Perl
        Scene("package-json", ["npm", "test"], {"package.json": '{"scripts": {"test": "echo MARK"}}'}),
        Scene("node-locks", ["npm", "ci", "--offline"],
              {"package-lock.json": '{"name": "mine", "version": "1.0.0", "lockfileVersion": 3, "requires": true,'
                                    ' "packages": {"": {"name": "mine", "version": "1.0.0"}}}'},
              _PACKAGE, sign="up to date"),
        Scene("npmrc", ["npm", "test"], {".npmrc": "script-shell=./shell.sh\n",
                                         "shell.sh": "#!/bin/sh\ntouch MARK\n"}, _PACKAGE),
        Scene("node-modules", ["node", "main.js"], {"node_modules/left/index.js": "console.log('MARK')\n"},
              {"main.js": "require('left')\n"}),
        Scene("node-tests", ["node", "--test"], {"src/sum.test.js": "console.log('MARK')\n"},
              {"mine.test.js": ""}),
        Scene("node-tests", ["node", "--test"], {"test/more.js": "console.log('MARK')\n"}, {"mine.test.js": ""}),
        Scene("deno", ["{bin}/deno", "task", "all"], {"deno.json": '{"tasks": {"all": "echo MARK"}}'}),
        Scene("perl-tests", ["prove", "-v"], {"t/all.t": "print qq(1..1\\nok 1 - MARK\\n);\n"},
              {"t/mine.t": "print qq(1..1\\nok 1\\n);\n"}),
        # git
        Scene("git-folder", ["git", "status"], {f".git/{name}": text for name, text in _REPOSITORY.items()},
              {"mine.txt": "x"}),
        Scene("git-folder", ["git", "-C", "docs", "status"],
              {"docs/.git": "gitdir: ../data\n",
               **{f"data/{name}": text for name, text in _REPOSITORY.items()}}, {"docs/mine.txt": "x"}),
        Scene("git-head", ["git", "-C", "docs", "status"],
              {f"docs/{name}": text for name, text in
               {**_REPOSITORY, "config": _RUNS + "\tworktree = ..\n"}.items()}, {"docs/mine.txt": "x"}),
        Scene("git-bare", ["sh", "-c", "git push -q ./mine.git HEAD:refs/heads/$(date +%N)"],
              {"mine.git/hooks/update": "#!/bin/sh\necho MARK\n"}, {"mine.txt": "x"},
              prepare=(*_INIT, ("git", "init", "-q", "--bare", "mine.git"), ("git", "add", "mine.txt"),
                       ("git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x"))),
        Scene("git-attributes", ["git", "check-attr", "-a", "mine.txt"], {".gitattributes": "*.txt MARK\n"},
              {"mine.txt": "x"}, prepare=_INIT),
        Scene("git-modules", ["git", "submodule", "init"],
              {".gitmodules": '[submodule "MARK"]\n\tpath = sub\n\turl = http://127.0.0.1/x\n'},
              prepare=(*_INIT, ("git", "update-index", "--add", "--cacheinfo", "160000," + "1" * 40 + ",sub"))),
        Scene("git-settings", ["git", "status"], {".gitconfig": "[core]\n\tfsmonitor = echo MARK >&2; false\n"},
              prepare=_INIT, home=True),
        # Shells, editors, debuggers
        Scene("shell-start", ["bash", "-i", "-c", "true"], {".bashrc": "echo MARK\n"}, home=True),
        Scene("login-start", ["bash", "-l", "-c", "true"], {".profile": "echo MARK\n"}, home=True),
        Scene("login-start", ["bash", "-l", "-c", "true"], {".bash_profile": "echo MARK\n"},
              {".profile": "echo mine\n"}, home=True),
        Scene("vim", ["vim", "-T", "dumb", "--not-a-term", "-c", "qa!"], {".vimrc": "silent !touch MARK\n"}, home=True),
        Scene("gdb", ["gdb", "-batch", "-iex", "add-auto-load-safe-path {folder}"], {".gdbinit": "echo MARK\\n\n"}),
        Scene("ctags", ["ctags", "-f", "-", "mine.c"], {".ctags.d/all.ctags": "--MARK\n"}, {"mine.c": ""}),
        # A home's settings
        Scene("curl", ["curl", "-s", "file:///dev/null"], {".curlrc": 'write-out = "MARK"\n'}, home=True),
        Scene("wget", ["wget", "--spider", "http://127.0.0.1:9/"], {".wgetrc": "MARK = on\n"}, home=True),
        Scene("executable", ["bash", "-c", "PATH=./bin:$PATH; tool"], {"bin/tool": "#!/bin/sh\necho MARK\n"}),
        # Containers and clouds
        Scene("dockerfile", ["docker", "build", "."], {"Dockerfile": "MARK\n"}),
        Scene("terraform", ["terraform", "validate", "-no-color"], {"more.tf": 'locals { MARK = nothing.x }\n'},
              {"main.tf": ""}),
        Scene("terraform-values", ["terraform", "plan", "-no-color", "-input=false"],
              {"more.auto.tfvars": 'word = "MARK"\n'},
              {"main.tf": 'variable "word" { default = "mine" }\noutput "word" { value = var.word }\n'}),
        Scene("kustomize", ["kubectl", "kustomize", "."],
              {"kustomization.yaml": "resources: [mine.yaml]\nnamePrefix: markMARK\n"},
              {"mine.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n"}),
    )  # fmt: skip
