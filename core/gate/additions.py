"""Additions that act: files that something later runs, loads or reads as configuration by itself.

Adding a file destroys nothing, so it has impact 1. But a `GNUmakefile` runs in place of the person's `Makefile` the
next time that they type `make`. The table says which names are like that, which tool takes the file, and what a person
is told when somebody who has read a stranger's text adds one in a directory of theirs (`core.tree.effects`). Pure.

A kind is `shown` if a test runs the tool with and without the file (`tests/core/gate/test_additions_on_tools.py`). The
others follow the tool's documentation: it was not there to be run.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.ports import FileState

_EXECUTE: Final = 0o111


@dataclass(frozen=True, slots=True)
class ActingKind:
    """A kind of file that acts once it is there. One row of the table."""

    name: str
    """Names the row, for tests and programs."""
    tool: str
    """The program that takes the file by itself."""
    reason: str
    """What a person is told: a sentence about what happens."""
    names: tuple[str, ...] = ()
    """Globs of the file's name, whatever folder it is in. In lower case: some file systems don't tell cases apart."""
    paths: tuple[str, ...] = ()
    """Globs of the end of the file's path, with one name for each part."""
    folders: tuple[str, ...] = ()
    """Globs of names of folders: whatever is added anywhere inside of one."""
    shown: bool = False
    """Whether a test shows it on the real tool."""


def _make_and_native() -> Sequence[ActingKind]:
    return (
        ActingKind(
            "gnumakefile",
            "make",
            "`make` runs this file instead of your makefile or Makefile.",
            names=("gnumakefile",),
            shown=True,
        ),
        ActingKind(
            "makefile",
            "make",
            "`make` runs this file, and one named `makefile` instead of your Makefile.",
            names=("makefile", "bsdmakefile"),
            shown=True,
        ),
        ActingKind(
            "make-part",
            "make",
            "`make` runs this file if a Makefile includes files of this name or ending.",
            names=("*.mk", "*.mak", "*.d", "*.dep", "kbuild", "kconfig"),
            shown=True,
        ),
        ActingKind(
            "cmake",
            "cmake",
            "`cmake` runs the commands in this file when it configures.",
            names=("cmakelists.txt",),
            shown=True,
        ),
        ActingKind(
            "cmake-presets",
            "cmake",
            "`cmake` takes settings and compilers from this file.",
            names=("cmakepresets.json", "cmakeuserpresets.json"),
            shown=True,
        ),
        ActingKind(
            "ctest",
            "ctest",
            "`ctest` runs the commands that this file names as tests.",
            names=("ctesttestfile.cmake", "ctestcustom.cmake", "ctestconfig.cmake", "dartconfiguration.tcl"),
            shown=True,
        ),
        ActingKind(
            "cmake-part",
            "cmake",
            "`cmake` runs this file: one named `PreLoad.cmake` by itself, others where it looks for them.",
            names=("*.cmake",),
            shown=True,
        ),
        ActingKind(
            "autotools",
            "autoconf, automake, configure",
            "`autoreconf` and `configure` run this file, or make from it what they run.",
            names=(
                "configure",
                "configure.ac",
                "configure.in",
                "makefile.am",
                "makefile.in",
                "*.m4",
                "config.site",
            ),
        ),
        ActingKind(
            "native-packages",
            "conan, vcpkg",
            "`conan` and `vcpkg` run this file, or install what it names.",
            names=("conanfile.*", "vcpkg.json", "vcpkg-configuration.json"),
        ),
        ActingKind(
            "packagings",
            "makepkg, rpmbuild, PyInstaller, snapcraft",
            "A tool that makes packages runs the commands in this file.",
            names=("pkgbuild", "apkbuild", "*.spec", "*.ebuild", "snapcraft.y*ml", "apprun"),
            paths=("snap/hooks/*",),
        ),
        ActingKind(
            "ninja", "ninja", "`ninja` runs the commands in this file.", names=("build.ninja",), shown=True
        ),
        ActingKind(
            "meson",
            "meson",
            "`meson` runs the commands in this file when it configures.",
            names=("meson.build", "meson.options", "meson_options.txt"),
        ),
        ActingKind(
            "debian-rules",
            "dpkg-buildpackage",
            "`dpkg-buildpackage` runs this file when it builds the package.",
            paths=("debian/rules", "debian/*inst", "debian/*rm"),
            shown=True,
        ),
        ActingKind(
            "bazel",
            "bazel",
            "`bazel` runs the rules in this file.",
            names=("build", "build.bazel", "workspace", "workspace.bazel", "module.bazel", "buck"),
        ),
        ActingKind(
            "scons",
            "scons",
            "`scons` runs this file as a program.",
            names=("sconstruct", "sconscript", "wscript*", "premake5.lua", "xmake.lua"),
        ),
        ActingKind(
            "task-runner",
            "just, task, tilt, foreman",
            "Task runners (`just`, `task`, `tilt`, `foreman`) run the commands in this file.",
            names=(
                "justfile",
                ".justfile",
                "taskfile.y*ml",
                "tiltfile",
                "procfile*",
                "earthfile",
                "magefile.go",
                "makefile.toml",
                "pants.toml",
                "pants",
            ),
        ),
        ActingKind(
            "nix",
            "nix",
            "`nix` builds and runs what this file says.",
            names=(
                "flake.nix",
                "flake.lock",
                "shell.nix",
                "default.nix",
                "devenv.nix",
                "guix.scm",
                "manifest.scm",
            ),
        ),
    )


def _rust_java_go() -> Sequence[ActingKind]:
    return (
        ActingKind(
            "build-rs",
            "cargo",
            "`cargo` compiles and runs this file before it builds the package.",
            names=("build.rs",),
            shown=True,
        ),
        ActingKind(
            "cargo-manifest",
            "cargo",
            "`cargo` builds what this file says, and runs what it names.",
            names=("cargo.toml",),
            shown=True,
        ),
        ActingKind(
            "cargo-lock",
            "cargo",
            "`cargo` takes the packages from where this file says.",
            names=("cargo.lock",),
            shown=True,
        ),
        ActingKind(
            "cargo-targets",
            "cargo",
            "`cargo test` and `cargo build` take this file as a program of its own.",
            paths=("tests/*.rs", "benches/*.rs", "examples/*.rs", "src/bin/*.rs", "tests/*/main.rs"),
            shown=True,
        ),
        ActingKind(
            "cargo-config",
            "cargo",
            "`cargo` runs the compilers and wrappers that this file names.",
            folders=(".cargo",),
            shown=True,
        ),
        ActingKind(
            "rust-toolchain",
            "rustup",
            "`cargo` and `rustc` run the toolchain that this file names.",
            names=("rust-toolchain", "rust-toolchain.toml"),
            shown=True,
        ),
        ActingKind(
            "maven",
            "mvn",
            "`mvn` runs the plugins that this file names.",
            names=("pom.xml",),
            shown=True,
        ),
        ActingKind(
            "maven-config",
            "mvn",
            "`mvn` starts Java with the options and extensions in this folder.",
            folders=(".mvn",),
            shown=True,
        ),
        ActingKind(
            "gradle",
            "gradle",
            "`gradle` runs this file, or takes settings from it.",
            names=("*.gradle", "*.gradle.kts", "gradle.properties", "gradle-wrapper.properties"),
        ),
        ActingKind(
            "ant",
            "ant, sbt, mill",
            "`ant`, `sbt` and `mill` run this file.",
            names=("build.xml", "ivy.xml", "build.sbt", "build.sc"),
            paths=("project/*.sbt", "project/*.scala", "project/build.properties"),
        ),
        ActingKind(
            "java-wrappers",
            "sh",
            "You start this file in place of `gradle` or `mvn`.",
            names=("gradlew", "mvnw"),
        ),
        ActingKind(
            "java-parts",
            "java",
            "`java` loads this file by its name, or takes classes to start and settings from it.",
            names=(
                "*.class",
                "*.jar",
                "module-info.java",
                "log4j*.xml",
                "log4j*.properties",
                "logback*.xml",
                "application*.properties",
                "application*.y*ml",
            ),
            paths=("meta-inf/services/*",),
        ),
        ActingKind(
            "go",
            "go",
            "`go` takes packages from where this file says, and runs its tests.",
            names=("go.mod", "go.work", "go.sum", "*_test.go"),
        ),
    )


def _python() -> Sequence[ActingKind]:
    return (
        ActingKind(
            "setup-py",
            "pip",
            "`pip install` runs this file as a program.",
            names=("setup.py",),
            shown=True,
        ),
        ActingKind(
            "setup-cfg",
            "pytest, setuptools",
            "`pytest`, `pip` and other tools take settings and plugins from this file.",
            names=("setup.cfg",),
            shown=True,
        ),
        ActingKind(
            "pyproject",
            "pytest, pip",
            "`pytest`, `pip` and other tools take settings, plugins and build programs from this file.",
            names=("pyproject.toml",),
            shown=True,
        ),
        ActingKind(
            "conftest",
            "pytest",
            "`pytest` runs this file before any test.",
            names=("conftest.py",),
            shown=True,
        ),
        ActingKind(
            "pytest-ini",
            "pytest",
            "`pytest` takes options and plugins from this file, before those of other files.",
            names=("pytest.ini", "pytest.toml"),
            shown=True,
        ),
        ActingKind(
            "tox-ini",
            "pytest, tox",
            "`tox` runs the commands in this file, and `pytest` takes options from it.",
            names=("tox.ini", "tox.toml"),
            shown=True,
        ),
        ActingKind(
            "python-tests",
            "pytest",
            "`pytest` and `unittest` find this file and run it.",
            names=("test*.py", "*_test.py"),
            shown=True,
        ),
        ActingKind(
            "sitecustomize",
            "python",
            "Every Python with this folder on its path runs this file when it starts.",
            names=("sitecustomize.py",),
            shown=True,
        ),
        ActingKind(
            "usercustomize",
            "python",
            "Every Python with this folder on its path runs this file when it starts.",
            names=("usercustomize.py",),
            shown=True,
        ),
        ActingKind(
            "pth",
            "python",
            "Python runs the lines of this file when it starts, if it lies among its packages.",
            names=("*.pth",),
            shown=True,
        ),
        ActingKind(
            "standard-module",
            "python",
            "Python imports this file instead of its own module of that name.",
            names=tuple(f"{name}.py" for name in STANDARD_MODULES),
            shown=True,
        ),
        ActingKind(
            "known-package",
            "python",
            "Python imports this file instead of the package of that name.",
            names=tuple(f"{name}.py" for name in KNOWN_PACKAGES),
            shown=True,
        ),
        ActingKind(
            "package-init",
            "python",
            "Python runs this file when anything in its folder is imported, and takes the folder before a module of"
            " its name.",
            names=("__init__.py",),
            shown=True,
        ),
        ActingKind(
            "package-main",
            "python",
            "Python runs this file when its folder is started.",
            names=("__main__.py",),
            shown=True,
        ),
        ActingKind(
            "compiled-python",
            "python",
            "Python can run this file instead of the source beside it.",
            names=("*.pyc", "*.pyo"),
            shown=True,
        ),
        ActingKind(
            "library",
            "python, the loader of programs",
            "Programs load this library by its name, and Python loads it instead of the source beside it.",
            names=("*.so", "*.so.*", "*.pyd", "*.dll", "*.dylib", "*.node"),
            shown=True,
        ),
        ActingKind(
            "python-metadata",
            "pytest, pip and others",
            "`pytest` and other programs load the plugins that this file names.",
            names=("*.egg-link", "python*._pth"),
            folders=("*.egg-info", "*.dist-info", "site-packages", "dist-packages"),
            shown=True,
        ),
        ActingKind(
            "mypy",
            "mypy",
            "`mypy` runs the plugins that this file names.",
            names=("mypy.ini",),
            shown=True,
        ),
        ActingKind(
            "ruff",
            "ruff",
            "`ruff` takes its settings from this file.",
            names=("ruff.toml",),
            shown=True,
        ),
        ActingKind(
            "coverage",
            "coverage",
            "`coverage` runs the plugins that this file names.",
            names=(".coveragerc",),
            shown=True,
        ),
        ActingKind("pdb", "pdb", "The Python debugger runs the commands in this file.", names=(".pdbrc",), shown=True),
        ActingKind(
            "pip-config",
            "pip",
            "`pip` takes packages from where this file says.",
            names=("pip.conf", "pip.ini"),
            shown=True,
        ),
        ActingKind(
            "python-locks",
            "pip, poetry, uv, pipenv, conda",
            "`pip`, `poetry`, `uv`, `pipenv` or `conda` install what this file names, from where it says.",
            names=("poetry.lock", "poetry.toml", "uv.lock", "uv.toml", "pipfile", "pipfile.lock", "pdm.lock",
                   "requirements*.txt", "constraints*.txt", "environment.y*ml", "pixi.toml", "pixi.lock"),
        ),
        ActingKind(
            "pyvenv", "python", "Python takes its own programs from where this file says.", names=("pyvenv.cfg",)
        ),
        ActingKind(
            "python-tasks",
            "nox, invoke, fabric, doit",
            "`nox`, `invoke`, `fab` and `doit` run this file.",
            names=("noxfile.py", "tasks.py", "fabfile.py", "dodo.py", "pavement.py"),
        ),
        ActingKind(
            "pylint",
            "pylint, flake8",
            "`pylint` and `flake8` run the code and plugins that this file names.",
            names=("pylintrc", "pylintrc.toml", ".pylintrc", ".flake8"),
        ),
        ActingKind(
            "mkdocs",
            "mkdocs",
            "`mkdocs` runs the hooks that this file names.",
            names=("mkdocs.yml", "mkdocs.yaml"),
            shown=True,
        ),
        ActingKind("sphinx", "sphinx-build", "`sphinx-build` runs this file.", names=("conf.py",)),
        ActingKind(
            "alembic",
            "alembic",
            "`alembic` runs the scripts that this file names.",
            names=("alembic.ini",),
            shown=True,
        ),
        ActingKind(
            "python-servers",
            "gunicorn, flask, celery, jupyter, ipython",
            "A server of Python programs (`gunicorn`, `flask`, `celery`, `jupyter`) runs this file.",
            names=(
                "gunicorn.conf.py", "wsgi.py", "asgi.py", "app.py", "celeryconfig.py", "jupyter_*config.py",
                "ipython_config.py", "manage.py", "local_settings.py", "settings_local.py", "localsettings.py",
            ),
        ),
        ActingKind(
            "migrations",
            "alembic, django, rails, flyway",
            "The next migration runs this file, and `alembic` runs it to list what there is.",
            paths=(
                "migrations/*.py", "migrations/*.sql", "migrations/*.*js", "migrations/*.ts", "versions/*.py",
                "alembic/*.py", "db/migrate/*.rb", "db/migration/*.sql",
            ),
            shown=True,
        ),
        ActingKind(
            "python-version",
            "pyenv",
            "`pyenv` runs the Python that this file names.",
            names=(".python-version",),
            shown=True,
        ),
    )  # fmt: skip


def _node_and_web() -> Sequence[ActingKind]:
    return (
        ActingKind(
            "package-json",
            "npm",
            "`npm` runs the scripts in this file, some of them at every install.",
            names=("package.json",),
            shown=True,
        ),
        ActingKind(
            "node-locks",
            "npm, yarn, pnpm",
            "`npm`, `yarn` and `pnpm` install packages from where this file says.",
            names=(
                "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock",
                "bun.lockb", "pnpm-workspace.yaml",
            ),
            shown=True,
        ),
        ActingKind(
            "npmrc",
            "npm",
            "`npm` takes its shell and its sources from this file.",
            names=(".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnp.cjs", ".pnp.loader.mjs"),
            shown=True,
        ),
        ActingKind(
            "node-modules",
            "node",
            "`node` loads what programs require from this folder first.",
            folders=("node_modules",),
            shown=True,
        ),
        ActingKind(
            "node-tests",
            "node",
            "`node --test` and other test programs find this file and run it.",
            names=("*.test.*", "*-test.*js", "*_test.*js", "test-*.*js", "test.*js", "*.spec.*"),
            paths=(
                "test/*.*js", "test/*.js", "test/*.ts", "test/*/*.js", "test/*/*.*js", "spec/*.js", "cypress/*/*.*",
            ),
            folders=("__tests__", "__mocks__"),
            shown=True,
        ),
        ActingKind(
            "node-configuration",
            "vite, jest, eslint, webpack and others",
            "Build and test tools (`vite`, `jest`, `eslint`, `webpack`) run this file.",
            names=(
                "*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.mts", "*.config.cts",
                "gulpfile.*", "gruntfile.*", "jakefile*", "karma.conf.*", "metro.config.*", "lerna.json", "nx.json",
                "turbo.json", "angular.json", "bunfig.toml", "tsconfig*.json", "jsconfig.json", "project.json",
                "workspace.json", "nodemon.json", "pm2.json", "app.json", "*.workspace.ts", "ng-package.json",
                "tslint.json",
            ),
        ),
        ActingKind(
            "deno",
            "deno",
            "`deno` takes tasks and the sources of modules from this file.",
            names=("deno.json", "deno.jsonc", "deno.lock", "import_map.json"),
            shown=True,
        ),
        ActingKind(
            "php", "composer, php", "`composer` and `phpunit` run what this file names.",
            names=("composer.json", "composer.lock", "phpunit.xml*", ".htaccess", ".user.ini", "web.config", "artisan",
                   "php.ini", "phpstan.neon*", "psalm.xml*", "rector.php"),
        ),
        ActingKind(
            "perl-tests",
            "prove",
            "`prove` finds this file and runs it.",
            paths=("t/*.t",),
            shown=True,
        ),
        ActingKind(
            "perl-build", "cpan", "`cpan` runs this file.", names=("makefile.pl", "build.pl", "cpanfile")
        ),
        ActingKind(
            "ruby",
            "rake, bundle",
            "`rake`, `bundle` and other Ruby programs run this file.",
            names=(
                "rakefile*", "*.rake", "gemfile*", "gems.rb", "*.gemspec", "config.ru", "guardfile", "podfile",
                "fastfile", "brewfile", "dangerfile", "capfile", "*_spec.rb", "spec_helper.rb", "berksfile", "thorfile",
                "puppetfile", "steepfile", "appfile", "matchfile", "snapfile", "gymfile",
            ),
            paths=("config/initializers/*.rb", "lib/tasks/*.rake"),
        ),
        ActingKind(
            "other-tests",
            "rake, phpunit, mix, mvn, dotnet, behave, cucumber",
            "Test programs find this file by its name or its folder, and run it.",
            names=(
                "*_test.rb", "test_*.rb", "*test.php", "*_test.exs", "test_helper.exs", "*test.java", "*tests.java",
                "*tests.cs", "*test.cs", "*_spec.lua", "*_test.dart", "*.feature",
            ),
            paths=("features/*.py", "features/steps/*.py", "features/*/*.rb"),
        ),
        ActingKind(
            "tex",
            "latex",
            "`latex` takes this file instead of its own of that name.",
            names=("*.cls", "*.sty", "*.bst", "*.ltx", "*.fd", "*latexmkrc"),
        ),
        ActingKind(
            "sites",
            "jekyll, mdbook, hugo",
            "A tool that makes sites runs the programs and plugins that this file names.",
            names=("_config.y*ml", "book.toml", "hugo.*", "antora*.y*ml"),
            folders=("_plugins",),
        ),
        ActingKind(
            "workflows",
            "snakemake, nextflow, dvc, dbt, airflow",
            "A tool that runs workflows runs the steps in this file.",
            names=("snakefile*", "nextflow.config", "main.nf", "dvc.yaml", "mlproject", "dbt_project.yml",
                   "profiles.yml", "airflow.cfg", "prefect.yaml", "dagster.yaml"),
            paths=("dags/*.py",),
        ),
        ActingKind(
            "other-languages",
            "mix, swift, dotnet, stack",
            "`mix`, `swift`, `dotnet` and `stack` run this file or build what it names.",
            names=(
                "mix.exs", "package.swift", "*.csproj", "*.fsproj", "*.vbproj", "directory.build.*", "*.sln",
                "nuget.config", "stack.yaml", "*.cabal", "cabal.project", "rebar.config", "build.zig", "dune",
                "pubspec.yaml", "project.clj", "doxyfile", "dune-project", "*.opam", "shard.yml", "elm.json",
                "deps.edn", "bb.edn", "shadow-cljs.edn", "*.targets", "*.props", "global.json", "rprofile.site",
                "renv.lock", "startup.jl", "pkgindex.tcl", "tclindex",
            ),
        ),
    )  # fmt: skip


def _git() -> Sequence[ActingKind]:
    return (
        ActingKind(
            "git-folder",
            "git",
            "`git` takes this for a repository, whose configuration names programs that it runs.",
            names=(".git",),
            folders=(".git",),
            shown=True,
        ),
        ActingKind(
            "git-head",
            "git",
            "With this file `git` can take its folder for a repository, whose configuration names programs that it"
            " runs.",
            names=("head",),
            shown=True,
        ),
        ActingKind(
            "git-bare",
            "git",
            "`git` runs the hooks of a repository, and the programs that its configuration names.",
            folders=("*.git",),
            shown=True,
        ),
        ActingKind(
            "git-attributes",
            "git",
            "`git` chooses filters and other programs for your files by this file.",
            names=(".gitattributes",),
            shown=True,
        ),
        ActingKind(
            "git-modules",
            "git",
            "`git` fetches other repositories from where this file says.",
            names=(".gitmodules",),
            shown=True,
        ),
        ActingKind(
            "git-settings",
            "git",
            "`git` takes settings and programs to run from this file.",
            names=(".gitconfig",),
            paths=(".config/git/*",),
            shown=True,
        ),
        ActingKind(
            "hooks-of-tools",
            "pre-commit, husky, lefthook",
            "`git commit` runs what this file names, if such hooks are installed.",
            names=(".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "lefthook.y*ml", "lefthook.toml"),
            paths=("hooks/pre-*", "hooks/post-*", "hooks/*-msg", "hooks/update", "hooks/fsmonitor-*"),
            folders=(".husky", ".githooks"),
        ),
        ActingKind(
            "pipelines",
            "GitHub, GitLab, Jenkins and others",
            "A server runs the commands in this file when it is pushed.",
            names=(
                ".gitlab-ci.yml", ".travis.yml", "jenkinsfile*", "azure-pipelines.y*ml", "bitbucket-pipelines.y*ml",
                "appveyor.y*ml", ".appveyor.yml", ".drone.yml", "cloudbuild.y*ml", "buildspec.y*ml", "codeowners",
                "renovate.json*", "netlify.toml", "vercel.json", "fly.toml", "wrangler.toml", "firebase.json",
            ),
            folders=(".github", ".gitlab", ".circleci", ".buildkite", ".gitea", ".forgejo", ".woodpecker"),
        ),
    )  # fmt: skip


def _shells_and_editors() -> Sequence[ActingKind]:
    return (
        ActingKind(
            "shell-start",
            "bash",
            "A shell runs this file when it starts or ends.",
            names=(".bashrc", ".bash_logout", ".bash_aliases", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".cshrc",
                   ".tcshrc", ".kshrc", ".mkshrc", "config.fish"),
            shown=True,
        ),
        ActingKind(
            "login-start",
            "bash",
            "A login runs this file.",
            names=(".profile", ".bash_profile", ".bash_login", ".login", ".xprofile", ".xinitrc", ".xsession",
                   ".pam_environment"),
            shown=True,
        ),
        ActingKind(
            "direnv",
            "direnv",
            "`direnv` runs this file when you enter the folder, once you have allowed it.",
            names=(".envrc", "mise.toml", ".mise.toml", ".tool-versions", ".nvmrc", ".node-version", ".ruby-version",
                   "devbox.json", "devcontainer.json", "rtx.toml"),
        ),
        ActingKind(
            "environment",
            "many programs",
            "Many programs take variables of their environment from this file.",
            names=(".env", ".env.*"),
        ),
        ActingKind(
            "vim",
            "vim",
            "`vim` runs the commands in this file when it starts.",
            names=(".vimrc", ".gvimrc", ".exrc", "_vimrc", ".nvimrc", ".nvim.lua", ".lvimrc", "init.vim"),
            folders=(".vim",),
            shown=True,
        ),
        ActingKind("emacs", "emacs", "`emacs` takes settings from this file.", names=(".dir-locals*.el", ".emacs")),
        ActingKind(
            "editors",
            "VS Code, JetBrains, Sublime Text",
            "An editor takes tasks and programs to run from here when you open the folder.",
            names=("*.code-workspace", "*.sublime-project", "*.iml", "*.xcodeproj"),
            folders=(".vscode", ".idea", ".fleet", ".zed", ".devcontainer", ".cursor"),
        ),
        ActingKind(
            "gdb",
            "gdb",
            "`gdb` runs the commands in this file where it may load from the folder.",
            names=(".gdbinit", "*-gdb.py", "*-gdb.gdb"),
            shown=True,
        ),
        ActingKind(
            "lldb", "lldb", "`lldb` runs the commands in this file.", names=(".lldbinit", ".lldbinit-*")
        ),
        ActingKind(
            "ctags",
            "ctags",
            "`ctags` takes its options from this file.",
            names=(".ctags",),
            folders=(".ctags.d",),
            shown=True,
        ),
        ActingKind(
            "clang",
            "clangd, clang-tidy",
            "`clangd`, `clang-tidy` and `clang-format` take compilers and settings from this file.",
            names=(".clangd", ".clang-tidy", ".clang-format", "compile_commands.json", "compile_flags.txt"),
        ),
        ActingKind(
            "agents",
            "coding agents",
            "Coding agents take this file as instructions.",
            names=("agents.md", "claude.md", "claude.local.md", "gemini.md", ".cursorrules", ".windsurfrules",
                   ".clinerules", ".mcp.json", "mcp.json", "skill.md", "agent.md", "copilot-instructions.md", "warp.md",
                   "qwen.md", "crush.md", "crush.json", "opencode.json*", "*.instructions.md", "*.prompt.md", "*.mdc",
                   "llms*.txt"),
            folders=(".claude", ".codex", ".agents", ".gemini"),
        ),
    )  # fmt: skip


def _home_and_system() -> Sequence[ActingKind]:
    return (
        ActingKind(
            "curl", "curl", "`curl` takes options from this file.", names=(".curlrc", "_curlrc"), shown=True
        ),
        ActingKind("wget", "wget", "`wget` takes options from this file.", names=(".wgetrc",), shown=True),
        ActingKind(
            "sqlite", "sqlite3", "`sqlite3` runs the commands in this file.", names=(".sqliterc",)
        ),
        ActingKind(
            "psql", "psql", "`psql` runs the commands in this file.", names=(".psqlrc", ".pg_service.conf", ".pgpass")
        ),
        ActingKind(
            "tmux", "tmux", "`tmux` runs the commands in this file.", names=(".tmux.conf", ".screenrc")
        ),
        ActingKind(
            "ssh",
            "ssh",
            "`ssh` lets in everybody with a key named here, and runs what its configuration names.",
            names=("authorized_keys", "authorized_keys2", "known_hosts", "ssh_config"),
            folders=(".ssh",),
        ),
        ActingKind(
            "home-settings",
            "many programs",
            "Programs take settings and commands from this folder.",
            folders=(".config", ".local", ".docker", ".kube", ".aws", ".gnupg", ".m2", ".gradle", ".iact"),
        ),
        ActingKind(
            "executable",
            "a shell, and whatever starts programs by name",
            "It can be run as a program, and is where its folder is searched for programs.",
            shown=True,
        ),
        ActingKind(
            "windows",
            "Windows",
            "Windows runs this file when it is opened, or instead of a program of its name.",
            names=("*.exe", "*.com", "*.bat", "*.cmd", "*.ps1", "*.psm1", "*.vbs", "*.scr", "*.msi", "*.lnk", "*.url",
                   "*.scf", "autorun.inf", "desktop.ini", "*.hta", "*.reg", "*.pif", "*.cpl", "*.jse", "*.vbe", "*.wsf",
                   "*.wsh", "*.chm", "*.inf", "*.library-ms", "*.search-ms"),
        ),
        ActingKind(
            "desktop",
            "desktops",
            "A desktop starts what this file names when it is opened.",
            names=("*.desktop", "*.appimage", "*.command", "*.workflow", "*.plist", "*.webloc", "*.inetloc", "*.fileloc",
                   "*.terminal", "*.mobileconfig", "*.scpt", "*.jnlp"),
            folders=("*.app", "*.workflow", "autostart"),
        ),
        ActingKind(
            "services",
            "systemd, cron",
            "The system starts what this file names, if it lies where services are kept.",
            names=("*.service", "*.timer", "*.socket", "*.path", "*.mount", "*.target", "crontab", "anacrontab",
                   "rc.local"),
            folders=("cron.d", "cron.daily", "cron.hourly", "cron.weekly", "cron.monthly", "init.d", "systemd",
                     "profile.d", "rules.d", "sudoers.d", "modprobe.d", "logrotate.d"),
        ),
        ActingKind(
            "servers",
            "caddy, supervisord, traefik, prometheus",
            "A server takes its settings from this file when it is started in this folder.",
            names=("caddyfile", "supervisord.conf", "traefik.y*ml", "traefik.toml", "prometheus.y*ml"),
        ),
    )  # fmt: skip


def _containers_and_clouds() -> Sequence[ActingKind]:
    return (
        ActingKind(
            "dockerfile",
            "docker",
            "`docker build` runs the commands in this file.",
            names=("dockerfile", "dockerfile.*", "*.dockerfile", "containerfile", "containerfile.*", ".dockerignore",
                   "docker-bake.*"),
            shown=True,
        ),
        ActingKind(
            "compose",
            "docker compose",
            "`docker compose` starts what this file names, and adds an override file by itself.",
            names=("compose.y*ml", "compose.override.y*ml", "docker-compose*.y*ml"),
            folders=("docker-entrypoint-initdb.d", "docker-entrypoint.d"),
        ),
        ActingKind(
            "terraform",
            "terraform",
            "`terraform` takes this file as a part of what it sets up.",
            names=("*.tf", "*.tf.json", "*.tofu", ".terraform.lock.hcl", ".terraformrc", "terragrunt.hcl"),
            folders=(".terraform",),
            shown=True,
        ),
        ActingKind(
            "terraform-values",
            "terraform",
            "`terraform` takes values from this file.",
            names=("terraform.tfvars", "terraform.tfvars.json", "*.auto.tfvars", "*.auto.tfvars.json"),
            shown=True,
        ),
        ActingKind(
            "kustomize",
            "kubectl",
            "`kubectl` sets up what this file names.",
            names=("kustomization.y*ml", "kustomization"),
            shown=True,
        ),
        ActingKind(
            "deployments",
            "helm, ansible, vagrant, pulumi and others",
            "A tool that sets up machines runs what this file names.",
            names=("chart.y*ml", "skaffold.y*ml", "ansible.cfg", "vagrantfile", "pulumi*.y*ml", "cdk.json",
                   "serverless.y*ml", "samconfig.toml", "app.y*ml", "helmfile.y*ml", "garden.y*ml", "okteto.y*ml",
                   "devspace.y*ml"),
            paths=("tasks/*.y*ml", "handlers/*.y*ml", "templates/*.y*ml", "library/*.py"),
            folders=("group_vars", "host_vars", "*_plugins"),
        ),
    )  # fmt: skip


def _other() -> Sequence[ActingKind]:
    return (
        ActingKind(
            "dot-folder",
            "many programs",
            "Programs take settings from folders whose names begin with a dot.",
            folders=(".*",),
        ),
    )


STANDARD_MODULES: Final = (
    "abc", "aifc", "argparse", "array", "ast", "asyncio", "atexit", "base64", "bdb", "binascii", "bisect", "builtins",
    "bz2", "cProfile", "calendar", "cgi", "cmd", "code", "codecs", "codeop", "collections", "colorsys", "compileall",
    "concurrent", "configparser", "contextlib", "contextvars", "copy", "copyreg", "csv", "ctypes", "curses",
    "dataclasses", "datetime", "dbm", "decimal", "difflib", "dis", "doctest", "email", "encodings", "ensurepip", "enum",
    "errno", "faulthandler", "fcntl", "filecmp", "fileinput", "fnmatch", "fractions", "ftplib", "functools", "gc",
    "genericpath", "getopt", "getpass", "gettext", "glob", "graphlib", "grp", "gzip", "hashlib", "heapq", "hmac",
    "html", "http", "imaplib", "imp", "importlib", "inspect", "io", "ipaddress", "itertools", "json", "keyword",
    "linecache", "locale", "logging", "lzma", "mailbox", "marshal", "math", "mimetypes", "mmap", "multiprocessing",
    "netrc", "nntplib", "ntpath", "numbers", "opcode", "operator", "optparse", "os", "pathlib", "pdb", "pickle",
    "pickletools", "pipes", "pkgutil", "platform", "plistlib", "poplib", "posix", "posixpath", "pprint", "profile",
    "pstats", "pty", "pwd", "py_compile", "pyclbr", "pydoc", "queue", "quopri", "random", "re", "readline", "reprlib",
    "resource", "rlcompleter", "runpy", "sched", "secrets", "select", "selectors", "shelve", "shlex", "shutil",
    "signal", "site", "smtplib", "socket", "socketserver", "sqlite3", "sre_compile", "sre_parse", "ssl", "stat",
    "statistics", "string", "stringprep", "struct", "subprocess", "symtable", "sys", "sysconfig", "syslog", "tabnanny",
    "tarfile", "telnetlib", "tempfile", "termios", "textwrap", "this", "threading", "time", "timeit", "tkinter",
    "token", "tokenize", "tomllib", "trace", "traceback", "tracemalloc", "tty", "turtle", "types", "typing",
    "unicodedata", "unittest", "urllib", "uu", "uuid", "venv", "warnings", "wave", "weakref", "webbrowser", "wsgiref",
    "xml", "xmlrpc", "zipapp", "zipfile", "zipimport", "zlib", "zoneinfo", "_thread", "__future__",
)  # fmt: skip
"""Python's own modules, as a fixed list: a verification must not depend on the Python that does it."""

KNOWN_PACKAGES: Final = (
    "aiohttp", "alembic", "anyio", "attr", "attrs", "bs4", "boto3", "botocore", "celery", "certifi", "chardet",
    "click", "colorama", "coverage", "cryptography", "cv2", "dateutil", "django", "docker", "dotenv", "fastapi",
    "flask", "google", "grpc", "gunicorn", "httpcore", "httpx", "hypothesis", "idna", "importlib_metadata",
    "jinja2", "joblib", "jsonschema", "jwt", "keras", "lxml", "markdown", "markupsafe", "matplotlib", "mypy",
    "networkx", "numpy", "openai", "openpyxl", "packaging", "pandas", "paramiko", "pil", "pip", "pkg_resources",
    "pluggy", "psycopg", "psycopg2", "pyarrow", "pydantic", "pygments", "pymongo", "pytest", "pytz", "redis",
    "requests", "rich", "scipy", "seaborn", "selenium", "setuptools", "six", "sklearn", "sqlalchemy", "starlette",
    "sympy", "tensorflow", "toml", "tomli", "torch", "tornado", "tqdm", "transformers", "typer", "typing_extensions",
    "urllib3", "uvicorn", "websockets", "werkzeug", "wheel", "wrapt", "yaml", "zmq",
)  # fmt: skip
"""Packages that many programs import, by the name that they are imported by."""

KINDS: Final[tuple[ActingKind, ...]] = (
    *_git(),
    *_make_and_native(),
    *_rust_java_go(),
    *_python(),
    *_node_and_web(),
    *_shells_and_editors(),
    *_home_and_system(),
    *_containers_and_clouds(),
    *_other(),
)
"""The table. Of several kinds that a file is of, the first is named to people."""

_BY_NAME: Final[Mapping[str, ActingKind]] = {kind.name: kind for kind in KINDS}


def acting_kind(path: str, state: FileState) -> ActingKind | None:
    """The kind of a file that acts by itself once it is at this path; None if it is an ordinary file.

    `state`: what is there. A folder alone does nothing; what is in it is judged by itself.
    """
    if state.type not in ("file", "link"):
        return None

    kind = _by_path(path.casefold())
    if kind is None and state.type == "file" and state.mode & _EXECUTE:
        return _BY_NAME["executable"]
    return kind


def _by_path(path: str) -> ActingKind | None:
    """The kind of a path in lower case, by its name, by the end of it, or by a folder that it is in."""
    folder, _, name = path.rpartition("/")
    rows = [*_EXACT.get(name, ()), *_fitting(_GLOBS, name)]

    if folder:
        rows += [row for row, end in _ENDS if end.fullmatch(path)]
        rows += _in_folder(folder)

    return KINDS[min(rows)] if rows else None


@functools.lru_cache(maxsize=1024)
def _in_folder(folder: str) -> tuple[int, ...]:
    """The kinds of whatever is in a folder, by its name or by that of one around it."""
    return tuple(row for name in folder.split("/") for row in _fitting(_FOLDERS, name))


_Patterns = tuple[tuple[int, re.Pattern[str]], ...]
"""For a kind, by its place in the table, one pattern for all of its globs."""


def _fitting(patterns: _Patterns, name: str) -> list[int]:
    return [row for row, pattern in patterns if pattern.match(name)]


def _is_glob(name: str) -> bool:
    return any(character in name for character in "*?[")


def _exact() -> Mapping[str, tuple[int, ...]]:
    """The kinds by the names that are written out."""
    rows_by_name: dict[str, tuple[int, ...]] = {}
    for row, kind in enumerate(KINDS):
        for name in kind.names:
            if not _is_glob(name):
                lower = name.casefold()
                rows_by_name[lower] = (*rows_by_name.get(lower, ()), row)
    return rows_by_name


def _patterns(globs_of: Callable[[ActingKind], Iterable[str]]) -> _Patterns:
    """One pattern for each kind that has such globs."""
    patterns = []
    for row, kind in enumerate(KINDS):
        globs = [fnmatch.translate(glob.casefold()) for glob in globs_of(kind)]
        if globs:
            patterns.append((row, re.compile("|".join(globs))))
    return tuple(patterns)


def _ends() -> _Patterns:
    """Patterns of whole paths that end as a kind says. A `*` stays within a name."""
    patterns = []
    for row, kind in enumerate(KINDS):
        if kind.paths:
            ends = "|".join(re.escape(end).replace(r"\*", "[^/]*") for end in kind.paths)
            patterns.append((row, re.compile(rf"(?:.*/)?(?:{ends})", re.DOTALL)))
    return tuple(patterns)


_EXACT: Final = _exact()
_GLOBS: Final = _patterns(lambda kind: filter(_is_glob, kind.names))
_FOLDERS: Final = _patterns(lambda kind: kind.folders)
_ENDS: Final = _ends()
