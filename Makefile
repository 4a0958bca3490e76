# make demo   builds, starts broker, engine and all services, runs the simulated fleet
# make demo-console   the same, then stays, to look at the fleet in the console
# make test   vets and runs every test, race detector on where there are goroutines
# make quick  what to run before a commit: vet, lint, tests that need no server
# Both do all their own set-up: Go fetches the modules, npm the database engine.

.PHONY: demo demo-console pictures test test-web chromium tools quick lint alerts systemd s3 shards cost chaos corpus upgrade simulate agree soak soak-seal inject agents bench bench-check fuzz mutation build plumbline man release release-check release-sign helm

GO ?= go

# The race detector is linked by a C compiler; without one the tests run without it. A program with it
# waits a second before it ends, and the tests run hundreds of programs: 20 ms are enough for a race
# that happens at the end.
CC_FOUND := $(shell command -v "$${CC:-cc}" 2>/dev/null || command -v gcc 2>/dev/null)
ifneq ($(CC_FOUND),)
RACE := -race
TEST_ENV := CGO_ENABLED=1 GORACE="atexit_sleep_ms=20 $$GORACE"
endif
# Compilers and analysers hold most of what they read until they end. With fewer collections they take a fifth less CPU time, and up to
# 1.5 GB; lint half as much. Tests run without it: what they test runs as it does elsewhere.
LESS_GC := GOGC=400
# What runs without the race detector is compiled as the programs of make build are, so a package is compiled once for both.
PLAIN_ENV := CGO_ENABLED=0

demo: plumbline
	bin/plumbline demo

# The same, and everything stays running until Ctrl-C, so that the console shows the fleet.
demo-console: plumbline
	bin/plumbline demo --stay

# Packages that start no goroutine, and neither do their tests (integration/floors checks it): the race detector
# finds nothing there, and takes three times the CPU. The tests of the stages run them with it. The longest come first.
ONE_GOROUTINE := ./aivs ./aivs/export ./ledger ./fleet ./integration/floors \
	./schema ./schema/a2a ./schema/json ./schema/mcp ./schema/openapi ./schema/signature \
	./aap ./aap/coherence ./aap/condition ./aap/drift ./aap/drift/inject ./aap/eval ./aap/reference ./aap/session ./aap/similarity \
	./aivs/anchor ./aivs/keyring ./aivs/micro ./aivs/pyjson ./aivs/redact ./aivs/report ./message ./message/audit \
	./cmd/plumbline/bench/floor ./examples ./pipeline/events ./pipeline/keyfile ./pipeline/otel ./pipeline/reload ./pipeline/subject ./pipeline/wire

# Tests of pipeline/drift that skip with the race detector: they start no goroutine, and take a minute with it (integration/floors
# checks that none is missing here).
WITHOUT_RACE := TestSeriesAreSmallInMemory TestNoSeriesAtRestIsLarge
# Tests that wait more than they work: they run first, beside those that work, for at the end a core would be idle meanwhile.
WAITING := ./web ./pipeline/webhook ./pipeline/verifier ./pipeline/reconcile
space := $(subst ,, )

# go vet is told of the race detector so that what it compiles serves the tests, too: on
# a fresh machine this spares 190 s of CPU. Four packages at a time, because tests wait for
# answers and for ack waits: with three, a fifth of two cores was idle. The tests' files are in
# memory where there is room. The tests of aap/drift/trial run twice: those on the corpus only without the race detector.
# Those of integration/web need a browser (make test-web).
test:
	@test -n "$(RACE)" || echo "make test: no C compiler found: the race detector is off"
	$(TEST_ENV) $(LESS_GC) $(GO) vet $(RACE) ./...
	$(PLAIN_ENV) $(LESS_GC) $(GO) -C integration/helm vet .
	$(PLAIN_ENV) $(GO) test -vet=off -timeout 20m $(ONE_GOROUTINE) ./aap/drift/trial
	$(PLAIN_ENV) $(GO) test -vet=off -timeout 20m -run '^($(subst $(space),|,$(WITHOUT_RACE)))$$' ./pipeline/drift
	$(TEST_ENV) sh integration/inmemory.sh $(GO) test $(RACE) -vet=off -timeout 20m -p 4 \
	  $(WAITING) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(ONE_GOROUTINE) ./integration/web)")

# The pages that people look at, in headless Chromium.
test-web: chromium
	PLUMBLINE_CHROMIUM=$$(command -v chromium) $(PLAIN_ENV) $(GO) test -count 1 -timeout 10m ./integration/web

# Chromium comes from Debian's packages if none is here.
chromium:
	@command -v chromium >/dev/null || { apt-get -q update && apt-get -q -y --no-install-recommends install chromium; } >/dev/null || \
	  { echo "make chromium: cannot install chromium: as root, apt-get install chromium"; exit 1; }

# Programs of Debian's packages that tests of make test run. Where one is missing, its tests skip and report it.
tools:
	@missing=; for tool in zsh docker-compose groff openssl; do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	  test -z "$$missing" || { apt-get -q update && apt-get -q -y --no-install-recommends install $$missing; } >/dev/null || \
	  echo "make tools: cannot install$$missing: their tests skip"

# Takes the pictures of README.md from the console of make demo-console, whose address is CONSOLE.
CONSOLE ?= http://127.0.0.1:8081
pictures:
	PLUMBLINE_CHROMIUM=$$(command -v chromium) $(GO) test -count 1 -timeout 10m -run '^TestPictures$$' ./integration/web -v -console $(CONSOLE) -pictures $(CURDIR)/docs/console

# Vet and lint look again only at what changed and what depends on it; so do tests, whose
# results Go keeps. Judgement and proof, files and forms: no broker, no database.
QUICK := ./schema/... ./aap/... ./aivs/... ./message/... ./ledger/... ./docs/... ./integration/floors \
	./pipeline/subject ./pipeline/wire ./pipeline/events ./pipeline/keyfile ./pipeline/keystore ./pipeline/durable ./pipeline/outbox \
	./pipeline/destination ./pipeline/auth ./pipeline/obs ./pipeline/reload ./pipeline/transport
quick: lint
	$(TEST_ENV) $(LESS_GC) $(GO) vet $(RACE) ./...
	$(GO) test -vet=off -timeout 5m $(QUICK)

# Faults that the compiler and vet do not find; integration/lint says which, and
# staticcheck.conf what is left out. It is told of the race detector for the reason that
# vet is; without the version of the repository in it, it keeps what it found before.
LINT := $(CURDIR)/bin/lint
lint:
	CGO_ENABLED=0 $(LESS_GC) $(GO) -C integration/lint build -buildvcs=false -trimpath -o $(LINT) .
	@unformatted=$$(gofmt -l .) && test -z "$$unformatted" || { echo "make lint: not as gofmt writes it: run gofmt -w on $$unformatted"; exit 1; }
	$(TEST_ENV) $(LESS_GC) GOFLAGS="$$($(GO) env GOFLAGS) $(RACE)" $(LINT) ./...

# The alert rules, read by Prometheus' own tool, and their tests: a series of metrics raises
# the alert that it must. Needs promtool (apt-get install prometheus).
alerts:
	@command -v promtool >/dev/null || { echo "make alerts: promtool is not installed: apt-get install prometheus"; exit 1; }
	promtool check rules deploy/prometheus/alerts.yml
	promtool test rules deploy/prometheus/alerts_test.yml

# The systemd units, checked by systemd's own tool, with the programs of bin/ in place of
# /usr/local/bin. The tool only warns about a setting that it does not know: any output fails.
systemd: build
	@command -v systemd-analyze >/dev/null || { echo "make systemd: systemd-analyze is not installed"; exit 1; }
	@set -e; dir=$$(mktemp -d); trap 'rm -r '$$dir EXIT; for unit in deploy/systemd/*.service; do \
	  sed 's|/usr/local/bin|$(CURDIR)/bin|' $$unit > $$dir/$$(basename $$unit); \
	  systemd-analyze verify --man=no $$dir/$$(basename $$unit) 2>$$dir/faults; cat $$dir/faults; \
	  test ! -s $$dir/faults; echo "$$unit: good"; \
	done

# Tests of the copies in S3 against a real server, which a module of its own names: to
# build it takes some minutes the first time.
S3_SERVER := $(CURDIR)/bin/versitygw
s3:
	CGO_ENABLED=0 $(GO) -C integration/s3server build -o $(S3_SERVER) github.com/versity/versitygw/cmd/versitygw
	PLUMBLINE_S3_SERVER=$(S3_SERVER) $(TEST_ENV) $(GO) test $(RACE) -count 1 -timeout 10m ./pipeline/destination/s3
	PLUMBLINE_S3_SERVER=$(S3_SERVER) $(TEST_ENV) $(GO) test $(RACE) -count 1 -timeout 10m -run S3 ./pipeline/exporter

# The Helm chart alone, of the tests of make test: what it makes of its example values, and the services with it on a real broker and database.
helm:
	$(GO) test -count 1 -timeout 10m -run '^TestChart' ./integration

# Strikes whole sites with every fault of docs/FAULTS.md, or with those that FAULTS
# matches, again and again with new seeds for MINUTES minutes: each at least once. The
# table of results goes to TABLE, too. KILLS is how often a fault kills its process.
MINUTES ?= 10
SEED ?= 0
FAULTS ?=
KILLS ?= 3
TABLE ?= $(CURDIR)/bin/chaos.md
chaos:
	mkdir -p $(dir $(TABLE))
	$(TEST_ENV) $(GO) test $(RACE) -count 1 -timeout 8h -run 'TestChaos/$(FAULTS)' ./integration -v \
	  -chaos -minutes $(MINUTES) -seed $(SEED) -kills $(KILLS) -table $(TABLE)

# Puts every NTH session of the recorded corpus through all stages: while each process is killed once,
# and for the queries of docs/QUERIES.md.
NTH ?= 1
corpus:
	$(TEST_ENV) $(GO) test $(RACE) -count 1 -timeout 20m -p 1 -run 'Corpus' ./integration ./integration/queries -v -nth $(NTH)

# Kills a plumbline up of the commit FROM under load, and goes on with its data.
FROM ?= HEAD~1
upgrade:
	$(TEST_ENV) $(GO) test $(RACE) -count 1 -timeout 20m -run '^TestUpgrade$$' ./integration -v -upgrade-from $(FROM)

# Simulates every stage under SEEDS seeds of faults, on a clock of its own. A seed that
# fails prints its history and the command that repeats it.
SEEDS ?= 10000
simulate:
	$(GO) test -count 1 -timeout 2h -run '^TestSimulation$$' ./pipeline/ingest ./pipeline/verifier ./pipeline/drift ./pipeline/exporter -seeds $(SEEDS)

# Runs the tests of the stages, the console, plumbline check and replay with the tables on two
# shards, and a fleet through all services on one server and on two shards that are killed.
shards:
	PLUMBLINE_TEST_SHARDS=1 $(TEST_ENV) $(GO) test $(RACE) -count 1 -timeout 30m -p 1 \
	  ./pipeline/database ./pipeline/store ./pipeline/verifier ./pipeline/drift ./pipeline/exporter ./pipeline/reconcile ./pipeline/reading ./web ./integration/queries
	PLUMBLINE_TEST_SHARDS=1 $(TEST_ENV) $(GO) test $(RACE) -count 1 -timeout 10m -run Shard ./pipeline/opledger
	PLUMBLINE_TEST_SHARDS=1 $(TEST_ENV) $(GO) test $(RACE) -count 1 -timeout 10m -run 'ExternalServers' ./cmd/plumbline
	$(TEST_ENV) $(GO) test $(RACE) -count 1 -timeout 10m -run TestFleetOnShards ./integration -v -shards

# What a trace costs in CPU and disk: the figures that docs/SCALING.md calculates with.
COST_TRACES ?= 50000
COST_AGENTS ?= 200
cost:
	$(GO) test -count 1 -timeout 1h -run TestCostOfATrace ./integration -v -cost -cost-traces $(COST_TRACES) -cost-agents $(COST_AGENTS)

# BUNDLES random bundles, most of them damaged, judged in Go and by verify.py; and
# every single byte of a bundle flipped.
BUNDLES ?= 10000
agree:
	$(GO) test -count 1 -timeout 1h -run 'TestGoAndPythonAgree|TestFlippingAnyByteIsRefused' ./aivs -v -differential $(BUNDLES) -exhaustive

# Publishes for SOAK minutes at 60 % of what this machine carries; no service may grow.
SOAK ?= 30
soak:
	CGO_ENABLED=0 $(GO) test -count 1 -timeout 24h -run '^TestSoak$$' ./integration -v -soak $(SOAK)

# Seals one session of ROWS rows, all of its parts of PART rows due at once, and tells the
# memory.
ROWS ?= 1000000
PART ?= 10000
soak-seal:
	$(GO) test -count 1 -timeout 4h -run TestLongSession ./pipeline/exporter -v -rows $(ROWS) -part $(PART)

# Makes the system calls fail, one after the other, that make a bundle durable: EIO,
# ENOSPC, and SIGKILL in the middle. Needs strace (apt-get install strace).
inject:
	@command -v strace >/dev/null || { echo "make inject: strace is not installed: apt-get install strace"; exit 1; }
	$(GO) test -count 1 -timeout 1h -run TestInjectedFaults ./pipeline/exporter -v -inject

# What each service has resident that works for AGENTS agents with a card each, and how soon drift
# and verifier process their first trace when they start with as many cards, and drift with as many
# states, without the race detector; takes some minutes. Where the states are measured, the
# agents share CARDS cards, TRACED traces are published, if not one for each agent, and drift has MEMORY (GOMEMLIMIT).
AGENTS ?= 100000
CARDS ?= -1
TRACED ?= -1
MEMORY ?=
agents:
	CGO_ENABLED=0 $(GO) test -count 1 -timeout 2h -run 'OfManyAgents$$' ./integration -v -agents $(AGENTS) -cards $(CARDS) -traced $(TRACED) -memory "$(MEMORY)"

# The benchmarks of the parts; bench-check measures whole scenarios again and fails if a ratio to the
# floor is more than 15 % below that of docs/bench/ratios.jsonl. It takes about twelve minutes; run nothing else meanwhile.
# SCENARIOS=drain,all measures only these.
bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

SCENARIOS ?=
bench-check: build
	bin/plumbline bench check docs/bench/ratios.jsonl $(if $(SCENARIOS),--scenarios $(SCENARIOS))

# Go fuzzes one target at a time: each for FUZZTIME, a minute unless told otherwise,
# which goes into new inputs rather than into making interesting ones smaller.
FUZZTIME ?= 60s
fuzz:
	@set -e; for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
	  for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 50x $$dir; \
	  done; \
	done

# Changes one condition or statement of judgement and proof at a time: a test must
# notice each change, or explained.txt says why none can. Takes an hour or two.
MUTATED ?= ./aap ./aap/coherence ./aap/condition ./aap/drift ./aap/session ./aap/similarity \
	./aivs ./aivs/anchor ./aivs/pyjson ./aivs/redact ./pipeline/keyfile ./aivs/keyring ./aivs/micro ./ledger ./message ./message/audit \
	./schema ./schema/a2a ./schema/mcp ./schema/signature
mutation:
	$(GO) run ./integration/mutation -explained integration/mutation/explained.txt $(MUTATED)

# The services and the tool in bin/. All are static but plumbline-engine, with which the tool starts the database engine. In a
# clone Go records the version and the commit; elsewhere, VERSION says which version this is.
VERSION ?=
BUILD = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X github.com/plumbline/plumbline/pipeline/service.version=$(VERSION)' -o bin/
build:
	$(BUILD) ./cmd/...

# The tool alone, and what it starts the engine with.
plumbline:
	$(BUILD) ./cmd/plumbline ./cmd/plumbline-engine

# The manual pages, in bin/man1: install -Dm 0644 -t /usr/local/share/man/man1 bin/man1/*
man: build
	bin/plumbline man bin/man1

# The files of a release, in bin/release: archives for amd64 and arm64 with lists of components, and SHA256SUMS.
ARCHES ?= amd64 arm64
release:
	VERSION='$(VERSION)' ARCHES='$(ARCHES)' GO='$(GO)' sh deploy/release.sh

# Signs the checksums of bin/release with the key that PLUMBLINE_RELEASE_KEY names.
release-sign:
	sh deploy/release-sign.sh bin/release

# Makes the release of this commit in another folder, with an empty cache of compiled packages and the modules by another path, and
# compares the checksums with those of bin/release. Takes some minutes.
release-check:
	@test -f bin/release/SHA256SUMS || { echo "make release-check: there is no bin/release: run make release with the same VERSION"; exit 1; }
	@set -e; dir=$$(mktemp -d); trap 'rm -rf '$$dir EXIT; git clone -q . $$dir/other; ln -s "$$($(GO) env GOMODCACHE)" $$dir/modules; \
	  (cd $$dir/other && GOCACHE=$$dir/cache GOMODCACHE=$$dir/modules VERSION='$(VERSION)' ARCHES='$(ARCHES)' GO='$(GO)' sh deploy/release.sh >/dev/null); \
	  diff bin/release/SHA256SUMS $$dir/other/bin/release/SHA256SUMS; echo "make release-check: the same bytes"
