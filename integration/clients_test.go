package integration_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/clients/clientstest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
)

// recording is what the test of a client has recorded.
type recording struct {
	Agent    string `json:"agent_id"`
	Sessions []struct {
		ID     string `json:"session_id"`
		Traces int    `json:"traces"`
		Last   string `json:"last"` // trace_id
	} `json:"sessions"`
}

// The clients' own tests against a real ingest. Both record until they are told to stop, while ingest is killed and
// restarted. Then each session in the database has exactly the traces that were recorded, numbered without
// gaps, and the verifier accepts every signature.
func TestClientsSurviveKillsOfIngest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	snippets := s.runSnippets()
	stop := filepath.Join(s.dir, "stop")
	clients := map[string]*exec.Cmd{
		"python":     clientstest.Python(t, "-m", "unittest", "tests.test_ingest"),
		"typescript": clientstest.Node(t, "--test", "test/ingest.test.mjs"),
	}
	ended := make(chan error, len(clients))
	for name, cmd := range clients {
		cmd.Env = append(cmd.Environ(), "PLUMBLINE_TEST_URL="+s.publisher.url, "PLUMBLINE_TEST_STOP="+stop, "PLUMBLINE_TEST_RESULT="+filepath.Join(s.dir, name),
			"TMPDIR="+t.TempDir())
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		exited := make(chan struct{})
		go func() {
			ended <- cmd.Wait()
			close(exited)
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it has ended, unless the test failed
			<-exited
		})
	}
	for range 2 {
		before := s.counts().Traces
		s.await("traces of the clients", func(c store.Counts) bool { return c.Traces >= before+200 })
		s.check(s.ingest.kill())
		for name := range clients {
			pipelinetest.Await(t, "three files in the spool of "+name, func() bool { return files(t, filepath.Join(s.dir, name+".spool")) >= 3 })
		}
		s.check(s.ingest.start())
	}
	s.check(os.WriteFile(stop, nil, 0o600))
	for range clients {
		if err := <-ended; err != nil {
			t.Errorf("a client: %v", err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	traces, sessions := 0, 0
	for name := range clients {
		recorded := s.recording(filepath.Join(s.dir, name))
		for _, session := range recorded.Sessions {
			traces += session.Traces
		}
		sessions += len(recorded.Sessions)
		if n := files(t, filepath.Join(s.dir, name+".spool")); n != 0 {
			t.Errorf("%s: %d files are left in the spool", name, n)
		}
	}
	const unknown = 1 // of test_what_ingest_says_about_a_trace_is_heard
	s.await("all traces", func(c store.Counts) bool { return c.Traces >= uint64(traces+unknown+snippets) })
	s.await("all sessions sealed", func(c store.Counts) bool { return c.Bundles >= uint64(sessions) })
	for name := range clients {
		s.compareRecording(s.recording(filepath.Join(s.dir, name)))
	}
	t.Logf("%d traces of %d sessions", traces, sessions)
	s.terminate()
}

// codeBlock matches a block of code in a document, with its language.
var codeBlock = regexp.MustCompile("(?s)\n```(python|typescript)\n(.*?)```\n")

// runSnippets runs the Python and TypeScript of the clients' documents as a reader would, and returns how many
// traces that makes.
func (s *site) runSnippets() (traces int) {
	s.t.Helper()
	dir := s.t.TempDir()
	clientstest.Link(s.t, dir)
	s.check(os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o600))
	scripts := map[string][]string{}
	for _, document := range []string{"../docs/CLIENTS.md", "../clients/python/README.md", "../clients/typescript/README.md"} {
		text, err := os.ReadFile(document)
		s.check(err)
		for i, block := range codeBlock.FindAllSubmatch(text, -1) {
			language := string(block[1])
			name := fmt.Sprintf("%s-%d.%s", filepath.Base(filepath.Dir(document)), i, map[string]string{"python": "py", "typescript": "ts"}[language])
			s.check(os.WriteFile(filepath.Join(dir, name), block[2], 0o600))
			scripts[language] = append(scripts[language], name)
		}
	}
	if len(scripts["python"]) < 3 || len(scripts["typescript"]) < 2 {
		s.t.Fatalf("the documents have the blocks %v: the expression has gone stale", scripts)
	}
	s.runIn(dir, clientstest.Node(s.t, slices.Concat([]string{filepath.Join(clientstest.Dir(s.t, "typescript"), "node_modules", "typescript", "bin", "tsc"),
		"--strict", "--target", "ES2022", "--module", "NodeNext"}, scripts["typescript"])...))
	for _, name := range scripts["typescript"] {
		s.runIn(dir, clientstest.Node(s.t, strings.TrimSuffix(name, "ts")+"js"))
	}
	for _, name := range scripts["python"] {
		s.runIn(dir, clientstest.Python(s.t, name))
	}
	const each = 2 // traces of each, except of the block that only makes a key
	return each * (len(scripts["python"]) + len(scripts["typescript"]) - 1)
}

// runIn runs a command of a client's user in a directory, and requires success without an error in its log.
func (s *site) runIn(dir string, cmd *exec.Cmd) {
	s.t.Helper()
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "PLUMBLINE_URL="+s.publisher.url, "PLUMBLINE_SPOOL="+filepath.Join(dir, "spool"))
	out, err := cmd.CombinedOutput()
	if err != nil || regexp.MustCompile(`(?m)^(plumbline: )?(invalid|refused|forbidden|unreachable|request|spool|dropped|internal):`).Match(out) {
		s.t.Errorf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// files returns how many files of lines a spool has.
func files(t testing.TB, spool string) (n int) {
	t.Helper()
	err := filepath.WalkDir(spool, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".jsonl" {
			n++
		}
		return nil // the client removes files while they are counted
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *site) recording(path string) (r recording) {
	s.t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(r.Sessions) == 0 {
		s.t.Fatalf("%s: %d sessions, %v", path, len(r.Sessions), err)
	}
	return r
}

// compareRecording compares what the database has of an agent with what was recorded.
func (s *site) compareRecording(r recording) {
	s.t.Helper()
	type session struct{ rows, ids, digests, least, greatest, numbers uint64 }
	found := map[string]session{}
	agent := "'" + r.Agent + "'"
	for _, row := range s.query(`SELECT session_id, count(), uniqExact(trace_id), uniqExact(digest), toUInt64(min(ifNull(sequence_number, 0))), toUInt64(max(ifNull(sequence_number, 0))),
		uniqExact(sequence_number) FROM visible_traces WHERE agent_id = ` + agent + ` GROUP BY session_id`) {
		n := make([]uint64, 6)
		for i := range n {
			n[i] = row[i+1].(uint64)
		}
		found[row[0].(string)] = session{n[0], n[1], n[2], n[3], n[4], n[5]}
	}
	if len(found) != len(r.Sessions) {
		s.t.Errorf("%s: %d sessions in the database, %d recorded", r.Agent, len(found), len(r.Sessions))
	}
	for _, recorded := range r.Sessions {
		n := uint64(recorded.Traces)
		if want := (session{n, n, n, 1, n, n}); found[recorded.ID] != want {
			s.t.Errorf("%s: session %s is %+v, want %+v", r.Agent, recorded.ID, found[recorded.ID], want)
		}
	}
	for _, statement := range []string{
		`SELECT type, count() FROM findings WHERE agent_id = ` + agent + ` GROUP BY type`,
		`SELECT type, count() FROM violations WHERE agent_id = ` + agent + ` GROUP BY type`,
		`SELECT type, count() FROM session_findings WHERE agent_id = ` + agent + ` GROUP BY type`,
	} {
		for _, row := range s.query(statement) {
			s.t.Errorf("%s: %v in the answer to %s", r.Agent, row, statement)
		}
	}
}
