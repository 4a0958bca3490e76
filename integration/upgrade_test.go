package integration_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// upgradeFrom is a commit: see make upgrade.
var upgradeFrom = flag.String("upgrade-from", "", "commit whose data TestUpgrade opens with this version")

// A plumbline up of an older commit is killed under load, and this version's continues with
// its data directory. What was acknowledged before and after is there once, the drift alerts
// and bundles are those that were planted, check --deep finds no difference, and every
// bundle verifies. The verdicts are compared with those of this version's engine: if the older
// commit has another engine version, they differ.
func TestUpgrade(t *testing.T) {
	if *upgradeFrom == "" {
		t.Skip("no older commit is named: make upgrade FROM=COMMIT builds it and runs this test; some minutes")
	}
	// Both are built before: ingest refuses a body that stops for as long as a build takes.
	older, newer, dir, address := buildCommit(t, *upgradeFrom), program(t, "plumbline"), t.TempDir(), freeAddress(t)
	up := run(t, &service{name: "up", program: older, address: address, env: environment(), args: []string{"up", "--data", dir, "--listen", address}})
	up.awaitReady()
	s := &site{t: t, place: place{dataDir: dir}, publisher: &publisher{t: t, url: "http://" + address}}
	planned := fleet.New(fleet.Config{Seed: 16, Agents: 40, Traces: 4000, Start: time.Now().UTC()})
	planted := planned.Planted()
	parts := slices.Collect(slices.Chunk(s.prepare(planned), chunk))
	for i, part := range parts {
		var sent func()
		if i == len(parts)/2 {
			pipelinetest.Await(t, "bundles of the older version", func() bool {
				bundles, err := filepath.Glob(filepath.Join(dir, "bundles", "*", "*.tar.gz"))
				return err == nil && len(bundles) > 10
			})
			sent = func() {
				up.program = newer
				s.check(up.restart())
			}
		}
		s.publisher.publish(part, sent)
	}
	up.awaitReady()
	s.connect(dir)
	s.awaitSealed(planted.Stored, planted.Sessions)
	t.Logf("seen %+v", s.compareCounts(planned))
	for _, args := range [][]string{{"check", "--deep", "--data", dir}, {"bundle", "verify", filepath.Join(dir, "bundles")}} {
		if output, err := exec.Command(program(t, "plumbline"), args...).CombinedOutput(); err != nil {
			t.Errorf("plumbline %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
	up.terminate()
}

// connect connects to the servers of the plumbline up that runs on a data directory.
func (s *site) connect(dir string) {
	s.t.Helper()
	at, err := machine.Find(s.t.Context(), dir)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.store, err = store.Open(s.t.Context(), store.Config{DSN: at.ServiceDSN, Stage: "integration"}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.check(s.store.Close()) })
	if s.client, err = stream.Connect(s.t.Context(), stream.Config{URL: at.NATSURL, MonitorURL: at.NATSMonitorURL, Name: "integration"}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.check(s.client.Close()) })
}

// buildCommit builds the tool from a commit of this repository.
func buildCommit(t *testing.T, commit string) (program string) {
	t.Helper()
	source := t.TempDir()
	archive := exec.Command("git", "archive", "--format=tar", commit)
	archive.Dir = ".." // the whole tree
	content, err := archive.Output()
	if err == nil {
		err = unpack(content, source)
	}
	if err != nil {
		t.Fatalf("take the source of %s from git (a shallow clone lacks it): %v", commit, err)
	}
	older := filepath.Join(source, "older")
	args := []string{"build", "-o", older + "/"}
	if raceEnabled {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "./cmd/plumbline...")...) // with plumbline-engine, if it has that
	build.Dir = source
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", commit, err, output)
	}
	return filepath.Join(older, "plumbline")
}

// unpack writes the files of an archive into a directory.
func unpack(archive []byte, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for files := tar.NewReader(bytes.NewReader(archive)); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch file.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(file.Name, 0o755)
		case tar.TypeReg:
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				err = root.WriteFile(file.Name, content, 0o644)
			}
		}
		if err != nil {
			return err
		}
	}
}
