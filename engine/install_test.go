package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/engine"
)

// pinnedLibrary returns the path of the real library, which the other tests run.
func pinnedLibrary(t *testing.T) string {
	t.Helper()
	if platform := runtime.GOOS + "/" + runtime.GOARCH; platform != "linux/amd64" {
		t.Skipf("no library is pinned for %s", platform)
	}
	path, err := engine.Install(t.Context(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// fakeNPM puts an npm on PATH that runs body in its working directory, and
// returns options with an empty cache.
func fakeNPM(t *testing.T, body string) engine.Options {
	t.Helper()
	dir := t.TempDir()
	script(t, dir, "npm", body)
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return engine.Options{CacheDir: filepath.Join(dir, "cache"), Progress: func(string) {}}
}

const unpack = "mkdir -p node_modules/@chdb/lib-linux-x64-gnu && cd node_modules/@chdb/lib-linux-x64-gnu && "

func TestTwoInstallationsAtOnceFetchOnce(t *testing.T) {
	real := pinnedLibrary(t)
	calls := filepath.Join(t.TempDir(), "calls")
	opts := fakeNPM(t, fmt.Sprintf("echo \"$@\" >> %s; %s ln -s %s libchdb.so", calls, unpack, real))
	var both errgroup.Group
	for range 2 {
		both.Go(func() error {
			_, err := engine.Install(t.Context(), opts)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "ci --ignore-scripts --no-audit --no-fund --cache "); n != 1 {
		t.Errorf("npm ci ran %d times: %s", n, text)
	}
	assertCacheHolds(t, opts.CacheDir, 1)
}

func TestFailedInstallationLeavesNothing(t *testing.T) {
	pinnedLibrary(t)
	for name, c := range map[string]struct{ npm, want string }{
		"npm fails":     {"echo EINTEGRITY; exit 1", "EINTEGRITY"},
		"no library":    {"exit 0", "installed no libchdb.so"},
		"wrong library": {unpack + "echo evil > libchdb.so", "not the pinned one"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := fakeNPM(t, c.npm)
			if path, err := engine.Install(t.Context(), opts); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("installed %q, error %v", path, err)
			}
			assertCacheHolds(t, opts.CacheDir, 0)
		})
	}
}

// The bytes of the download are measured while npm runs, which writes two copies; and the end is told, also of a
// download that fails.
func TestDownloadIsMeasured(t *testing.T) {
	pinnedLibrary(t)
	enough := filepath.Join(t.TempDir(), "enough")
	opts := fakeNPM(t, fmt.Sprintf(`while [ "$1" != --cache ]; do shift; done
mkdir -p "$2/tmp" && head -c 3000000 /dev/zero > "$2/tmp/a" && head -c 2900000 /dev/zero > "$2/tmp/b" && echo > "$2/index"
while [ ! -e %s ]; do sleep 0.01; done; exit 1`, enough))
	var size int64
	var measured errgroup.Group
	ended := make(chan struct{})
	opts.Fetching = func(of int64, fetched func() int64) func() {
		size = of
		measured.Go(func() error {
			for fetched() != 3_000_000 {
				select {
				case <-ended:
					return fmt.Errorf("%d bytes were measured last", fetched())
				default:
				}
			}
			return os.WriteFile(enough, nil, 0o600)
		})
		return func() { close(ended) }
	}
	if _, err := engine.Install(t.Context(), opts); err == nil {
		t.Error("a failed download was installed")
	}
	select {
	case <-ended:
	default:
		t.Error("the end was not told")
	}
	if err := measured.Wait(); err != nil || size != 178_000_000 {
		t.Errorf("size %d, %v", size, err)
	}
}

// assertCacheHolds counts the libraries and requires that there is no staging directory.
func assertCacheHolds(t *testing.T, cache string, want int) {
	t.Helper()
	libraries, err := filepath.Glob(filepath.Join(cache, "*", "libchdb.so"))
	if err != nil {
		t.Fatal(err)
	}
	staging, err := filepath.Glob(filepath.Join(cache, "staging*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(libraries) != want || len(staging) != 0 {
		t.Errorf("the cache holds %v and %v, want %d libraries", libraries, staging, want)
	}
}

// The lock file must pin every package and name no registry.
func TestLockFileIsPinnedAndNamesNoRegistry(t *testing.T) {
	text, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version, Resolved, Integrity string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	if len(lock.Packages) != 2 || strings.Contains(string(text), "://") {
		t.Errorf("the lock file has %d packages, or an address:\n%s", len(lock.Packages), text)
	}
	for name, p := range lock.Packages {
		if name != "" && (p.Version == "" || p.Resolved != "" || !strings.HasPrefix(p.Integrity, "sha512-")) {
			t.Errorf("%s is not pinned: %+v", name, p)
		}
	}
}
