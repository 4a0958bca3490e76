package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plumbline/plumbline/machine"
)

// awaitFor bounds how long one script command waits. Checks run on busy machines: a machine of Plumbline needs some seconds
// of CPU time to start.
const awaitFor = 3 * time.Minute

// await repeats a command until it succeeds and its output contains TEXT:
//
//	await TEXT plumbline sql …
func await(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: await TEXT COMMAND [ARG…]")
	}
	deadline := time.Now().Add(awaitFor)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 320*time.Millisecond) {
		asked := time.Now()
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("timed out waiting for %q of %q: %v", args[0], args[1:], err)
		}
		time.Sleep(max(pause, time.Since(asked))) // a command takes CPU time from what it waits for
	}
}

// running waits until a machine runs on a data directory:
//
//	running DIR
func running(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		ts.Fatalf("usage: running DIR")
	}
	ctx, cancel := context.WithTimeout(context.Background(), awaitFor)
	defer cancel()
	ts.Check(machine.Poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := machine.Find(ctx, ts.MkAbs(args[0]))
		return err == nil, nil
	}))
}

// exits requires an exit code:
//
//	exits CODE COMMAND [ARG…]
func exits(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code is %d, want %s", code, args[0])
	}
}

// terminate sends SIGTERM to the machine that runs on a data directory:
//
//	terminate DIR
func terminate(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		ts.Fatalf("usage: terminate DIR")
	}
	at, err := machine.Find(context.Background(), ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(syscall.Kill(at.PID, syscall.SIGTERM))
}

// noSecrets requires that the last output contains no secret of an endpoints.json:
//
//	nosecrets ENDPOINTS
func noSecrets(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		ts.Fatalf("usage: nosecrets ENDPOINTS")
	}
	var at machine.Endpoints
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &at))
	printed := ts.ReadFile("stdout") + ts.ReadFile("stderr")
	for _, address := range []string{at.NATSURL, at.ClickHouseDSN, at.OperatorDSN, at.ServiceDSN} {
		u, err := url.Parse(address)
		ts.Check(err)
		if password, given := u.User.Password(); !given || strings.Contains(printed, password) {
			ts.Fatalf("the password of %s is not given, or printed:\n%s", u.Redacted(), printed)
		}
	}
	if u, err := url.Parse(at.NATSMonitorURL); err != nil || len(u.Path) < 2 || strings.Contains(printed, u.Path) {
		ts.Fatalf("the path of the monitoring pages is not given, or printed: %v\n%s", err, printed)
	}
}
