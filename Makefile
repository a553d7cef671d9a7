# Every step that the checks run is a target here. `make` alone prints what there is.

GO            ?= go
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# The race detector needs a C compiler; without one Go turns cgo off by itself.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

.DEFAULT_GOAL := help
.PHONY: help run build test test-web bench soak pooler fmt vet lint vuln ci

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## try it: everything in one process; CROWD=200 adds a simulated crowd
	$(GO) build -o bin/foyer ./cmd/foyer
	bin/foyer dev $(if $(CROWD),--crowd $(CROWD))

build: ## the one binary, bin/foyer
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/foyer ./cmd/foyer

test: ## every Go test, with the race detector; brings its own Redis and PostgreSQL
	$(GO) test $(RACE) -timeout 15m ./...

test-web: web/test/stomp/node_modules ## the pages' tests, and those with a STOMP client (needs node and npm)
	node --test $$(find web -name node_modules -prune -o -name '*.test.mjs' -print)

web/test/stomp/node_modules: web/test/stomp/package-lock.json
	npm ci --prefix web/test/stomp --no-audit --no-fund --silent
	touch $@

# Takes a quarter of an hour. GOGC is what a worker process sets for itself.
bench: ## measure beside others, into bench/RESULTS.md
	cd bench && GOGC=400 $(GO) test -run '^$$' -bench . -benchtime 1x -timeout 60m .
	cd bench/peers && GOGC=400 $(GO) test -run '^$$' -bench . -benchtime 1x -timeout 60m .

SOAK ?= 5m

soak: ## break one part after the other under load, for SOAK=5m
	SOAK=$(SOAK) $(GO) test $(RACE) -tags soak -run '^TestSoak$$' -v -timeout 24h .

pooler: ## keep the promises about SQL behind PgBouncer too (installs it)
	$(GO) test $(RACE) -tags pooler -run 'BehindPgBouncer|/pgbouncer' -timeout 15m . ./store

fmt: ## fail on files that gofmt would change
	@files=$$(gofmt -l $$(find . -name '*.go' -not -path './node_modules/*')); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

vet: ## go vet
	$(GO) vet ./...

lint: ## golangci-lint at the pinned version; the first run builds it
	$(GO) run $(GOLANGCI_LINT) run ./...

# Not part of ci: it asks the public vulnerability database, and a check that needs
# the open internet must not decide whether a change is right.
vuln: ## known vulnerabilities in what we import (needs the internet)
	$(GO) run $(GOVULNCHECK) ./...

ci: fmt vet lint test-web test ## everything that must be green before a change lands
