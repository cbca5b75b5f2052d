# Tamarack: what a person does with the checkout. The recipes live in make/.

BENCH_ARGS ?=

SEED ?=
SECONDS ?= 60

.PHONY: help run test record compare bench instructions bench-publish manual fuzz clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | column -t -s '|'

run: ## build, then serve site/ on http://127.0.0.1:8080 and https://127.0.0.1:8443
	@make/run

test: ## install what the tests need (as root), then run all of them
	@make/test

record: ## ask the installed apache2 anew what the black-box tests expect
	@make/need apache2:apache2 htpasswd:apache2-utils openssl:openssl \
		/usr/lib/apache2/modules/mod_wsgi.so:libapache2-mod-wsgi-py3 \
		/usr/lib/$$(gcc -print-multiarch)/apr-util-1/apr_dbd_sqlite3.so:libaprutil1-dbd-sqlite3
	cargo run --package blackbox -- record

compare: ## random configurations and requests, Apache beside Tamarack (SEED=, SECONDS=)
	@make/need apache2:apache2
	cargo build --quiet --package tamarack --package python --package compare
	cargo run --quiet --package compare -- $(if $(SEED),--seed $(SEED)) --seconds $(SECONDS)

bench: ## measure what has a target: CPU time per request beside Apache, nginx, h2o and the floor
	@make/rust
	@make/need cc:gcc wrk:wrk openssl:openssl taskset:util-linux python3:python3
	@make/need --optional apache2:apache2 nginx:nginx h2o:h2o
	cargo build --release --package tamarack --package python
	lab/run --targets --no-install --seconds 2 $(BENCH_ARGS)

instructions: ## count the instructions of the request path, against the limits
	@make/need valgrind:valgrind
	@make/instructions

bench-publish: ## put the newest result (or RESULT=DIR) into docs/measuring.md and the README
	lab/run --publish "$(or $(RESULT),$(lastword $(sort $(wildcard lab/results/20*))))"

manual: ## write docs/directives/ and docs/compat.md from rows and chapters
	cargo xtask manual

fuzz: ## run every fuzz target for ten minutes
	fuzz/run --seconds 600

clean: ## remove what was built and what `make run` left
	cargo clean
	rm -rf var
