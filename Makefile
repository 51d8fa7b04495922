# Thin: cargo builds, `cargo xtask` checks (cargo xtask --help). Needs a Rust toolchain and a C compiler.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo

bindir = $(DESTDIR)$(PREFIX)/bin
libdir = $(DESTDIR)$(PREFIX)/lib
mandir = $(DESTDIR)$(PREFIX)/share/man/man1
bashdir = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
zshdir = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
fishdir = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
includedir = $(DESTDIR)$(PREFIX)/include/beeline
licencedir = $(DESTDIR)$(PREFIX)/share/licenses/beeline

# Where `make` leaves the program and what it says about itself, until `make install` copies them.
target = $(or $(CARGO_TARGET_DIR),target)
built = $(target)/release/beeline
staged = $(target)/install

.DEFAULT_GOAL := help
.PHONY: help run figures check test bench long gen rtl-tools guest build stage install uninstall install-sisci uninstall-sisci clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24
	@printf '\nLanes of make test, each one command:\n\n'
	@$(CARGO) xtask --help 2>/dev/null | sed -n '/^Commands:/,/^Options:/p' | sed '1d;$$d'

run: ## measure every interface on this machine: a table, and report.html (under two minutes)
	@echo "Building the beeline program (release, a minute or two the first time), then measuring. Needs cargo only."
	$(CARGO) run --release --package beeline-cli -- compare

figures: ## the published figures beside simulated ones: tables, and figures.html
	$(CARGO) run --profile quick --package beeline-cli -- figures --html figures.html

check: ## before a commit: format, house rules, clippy, unit tests of the crates that changed (SINCE=main for a branch)
	$(CARGO) xtask check --since $(or $(SINCE),HEAD)

test: ## every short check, as CI runs it; ends with "N passed, N failed" (installs tools, says which)
	$(CARGO) xtask ci

bench: ## the targets of bench/, as ratios from one run on two pinned cores (brings and builds the rivals first)
	$(CARGO) xtask rivals --build
	$(CARGO) build --release --package beeline-sisci
	$(CARGO) run --release --package beeline-bench -- run

long: ## every check with its long settings: hours
	$(CARGO) xtask long

gen: ## generate spec/generated from spec/nic.rdl and spec/formats.toml (needs Python)
	$(CARGO) xtask gen

rtl-tools: ## simulator, linters, synthesis and proof for the NIC's RTL, into target/rtl (once, about a minute)
	$(CARGO) xtask rtl-tools

guest: ## boot a Linux of Debian under emulation, load the driver and send from chi0 to chi1 (cargo xtask guest --help: boot, run, shell)
	$(CARGO) xtask guest driver

build: ## the program, and the library that it preloads, optimised
	$(CARGO) build --release --package beeline-cli --package beeline-sockets

stage: build
	rm -rf $(staged)
	mkdir -p $(staged)/man $(staged)/completions
	$(built) generate man --out $(staged)/man
	for shell in bash zsh fish; do $(built) generate completions $$shell > $(staged)/completions/$$shell || exit 1; done

install: stage ## program, library for sockets, man pages, completions, C library and headers, licences; PREFIX=/usr/local DESTDIR=
	install -d $(bindir) $(libdir) $(mandir) $(bashdir) $(zshdir) $(fishdir) $(includedir) $(licencedir)
	install -m 755 $(built) $(bindir)/beeline
	-strip $(bindir)/beeline
	install -m 755 $(target)/release/libbeeline_sockets.so $(libdir)
	-strip --strip-unneeded $(libdir)/libbeeline_sockets.so
	install -m 644 $(staged)/man/*.1 $(mandir)
	install -m 644 $(staged)/completions/bash $(bashdir)/beeline
	install -m 644 $(staged)/completions/zsh $(zshdir)/_beeline
	install -m 644 $(staged)/completions/fish $(fishdir)/beeline.fish
	install -m 644 spec/generated/c/*.h $(includedir)
	install -m 644 LICENSE-APACHE LICENSE-MIT $(licencedir)
	$(MAKE) -C api/c install PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)

uninstall: ## what install put there
	rm -f $(bindir)/beeline $(libdir)/libbeeline_sockets.so $(mandir)/beeline.1 $(mandir)/beeline-*.1
	rm -f $(bashdir)/beeline $(zshdir)/_beeline $(fishdir)/beeline.fish
	rm -rf $(includedir) $(licencedir)
	$(MAKE) -C api/c uninstall PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)

install-sisci: ## libsisci, its headers and examples, as programs of SISCI expect them; PREFIX=/usr/local DESTDIR=
	$(MAKE) -C api/sisci install PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)

uninstall-sisci: ## what install-sisci put there
	$(MAKE) -C api/sisci uninstall PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)

clean: ## everything that was built
	$(CARGO) clean
