package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// spool is the directory SPOOL/AGENT/OWNER of one recorder, with owner.json and files of lines.
// Its form is the same in all clients (docs/CLIENTS.md). A recorder writes only in its own
// directory, and takes over the files of a dead owner by renaming them, which succeeds for one
// process only.
type spool struct {
	agent  string // SPOOL/AGENT; empty: in memory only
	own    string // empty before the first file
	number int    // of the last file
}

// batch is some lines in the order in which they were recorded: a file of the spool, or memory
// where there is none.
type batch struct {
	path   string   // empty: in memory
	lines  [][]byte // nil once they are only in the file
	file   *os.File // while lines are added
	bytes  int64
	items  int // of this recorder, the dropped ones included; 0 in a file that was taken over
	traces int // among the items
	born   time.Time
	synced bool
}

const (
	batchSuffix = ".jsonl"
	ownBatch    = "1-%012d" + batchSuffix
	takenBatch  = "0-%012d" + batchSuffix // is sent before the recorder's own

	maxAgentName = 200 // of a directory; a longer one is shortened with a hash
)

func newSpool(root, agentID string) *spool {
	if root == NoSpool {
		return new(spool)
	}
	name := subject.Token(agentID)
	if len(name) > maxAgentName {
		sum := sha256.Sum256([]byte(agentID))
		name = name[:150] + "=" + hex.EncodeToString(sum[:16])
	}
	return &spool{agent: filepath.Join(root, name)}
}

// open returns a new batch. With an error it is one in memory.
func (s *spool) open() (*batch, error) {
	b := &batch{born: time.Now()}
	if s.agent == "" {
		return b, nil
	}
	path, err := s.next(ownBatch)
	if err != nil {
		return b, err
	}
	if b.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600); err == nil {
		b.path = path
	}
	return b, err
}

// next returns the path of a new file in the recorder's directory.
func (s *spool) next(pattern string) (string, error) {
	if err := s.enter(); err != nil {
		return "", err
	}
	s.number++
	return filepath.Join(s.own, fmt.Sprintf(pattern, s.number)), nil
}

// enter makes the recorder's directory, which has owner.json from the start.
func (s *spool) enter() error {
	if s.own != "" {
		if _, err := os.Stat(s.own); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(s.agent, 0o700); err != nil {
		return err
	}
	staged, err := os.MkdirTemp(s.agent, fmt.Sprintf(".%d-", os.Getpid()))
	if err != nil {
		return err
	}
	if err := writeOwner(staged, os.Getpid()); err != nil {
		return err
	}
	own := filepath.Join(s.agent, strings.TrimPrefix(filepath.Base(staged), "."))
	if err := os.Rename(staged, own); err != nil {
		return err
	}
	s.own = own
	return errors.Join(syncDir(s.agent), syncDir(filepath.Dir(s.agent)))
}

// touch shows processes on other hosts that this one lives.
func (s *spool) touch() error {
	if s.own == "" {
		return nil
	}
	now := time.Now()
	return os.Chtimes(filepath.Join(s.own, ownerName), now, now)
}

// takeOver takes over the files of dead owners. An error is about one of them.
func (s *spool) takeOver() (taken []*batch, err error) {
	if s.agent == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(s.agent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	faults := []error{err}
	for _, entry := range entries {
		dir := filepath.Join(s.agent, entry.Name())
		if dir == s.own || strings.HasPrefix(entry.Name(), ".") || !entry.IsDir() || alive(dir) {
			continue
		}
		files, err := os.ReadDir(dir) // in the order of their names
		faults = append(faults, err)
		for _, file := range files {
			if !strings.HasSuffix(file.Name(), batchSuffix) {
				continue
			}
			b, err := s.take(filepath.Join(dir, file.Name()))
			faults = append(faults, err)
			if b != nil {
				taken = append(taken, b)
			}
		}
		// It is empty now, unless another process takes the rest or a file could not be renamed.
		if os.Remove(filepath.Join(dir, ownerName)) == nil {
			_ = os.Remove(dir)
		}
	}
	return taken, errors.Join(faults...)
}

// take renames a file into the recorder's directory; nil if another process was first.
func (s *spool) take(from string) (*batch, error) {
	path, err := s.next(takenBatch)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(from, path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &batch{path: path, bytes: info.Size(), born: info.ModTime()}, nil
}

// leave gives the directory up: what is left in it is for the next recorder, of this process or
// another.
func (s *spool) leave() error {
	if s.own == "" {
		return nil
	}
	left, err := filepath.Glob(filepath.Join(s.own, "*"+batchSuffix))
	if err != nil || len(left) > 0 {
		return errors.Join(err, writeOwner(s.own, 0))
	}
	return os.RemoveAll(s.own)
}

// add adds lines, to the file if there is one. After an error the batch has what it had before.
func (b *batch) add(lines [][]byte, sync bool) error {
	var data bytes.Buffer
	for _, line := range lines {
		data.Write(line)
		data.WriteByte('\n')
	}
	if b.file != nil {
		_, err := b.file.Write(data.Bytes())
		if err == nil && sync {
			err = errors.Join(b.file.Sync(), syncDir(filepath.Dir(b.path)))
		}
		if err != nil {
			_ = b.file.Truncate(b.bytes) // what cannot be removed is sent twice, which is harmless
			return err
		}
	}
	b.lines = append(b.lines, lines...)
	b.bytes += int64(data.Len())
	return nil
}

// cut ends the adding of lines. They leave memory if the file has them.
func (b *batch) cut() error {
	if b.file == nil {
		return nil
	}
	opened, err := b.file.Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = os.Stat(b.path); err == nil && !os.SameFile(opened, named) {
			err = fs.ErrNotExist
		}
	}
	err = errors.Join(err, b.file.Close())
	b.file = nil
	if err != nil { // another process took this one for dead, perhaps before the last lines
		b.path = ""
		return err
	}
	b.lines = nil
	return nil
}

// load returns the lines. An incomplete last line, of a process that was killed, is none. If the
// file has gone, another process took this one for dead, and sends it: there are no lines.
func (b *batch) load() ([][]byte, error) {
	if b.lines != nil || b.path == "" {
		return b.lines, nil
	}
	text, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(text, []byte{'\n'})
	blank := func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 } // ingest does not answer for such a line
	return slices.DeleteFunc(lines[:len(lines)-1], blank), nil
}

// left returns how many traces the lines in memory have.
func (b *batch) left() (n int) {
	for _, line := range b.lines {
		if endOf(line) == nil {
			n++
		}
	}
	return n
}

// sync makes a batch that was cut survive a loss of power.
func (b *batch) sync() error {
	if b.path == "" || b.synced {
		return nil
	}
	file, err := os.Open(b.path)
	if err != nil {
		return err
	}
	err = errors.Join(file.Sync(), file.Close(), syncDir(filepath.Dir(b.path)))
	b.synced = err == nil
	return err
}

func (b *batch) remove() error {
	if b.path == "" {
		return nil
	}
	if err := os.Remove(b.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

const ownerName = "owner.json"

// owner says which process a directory belongs to; pid 0: none.
type owner struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Started string `json:"started"` // see startOf
}

// abandonedAfter is how old the owner.json of another host must be for its owner to count as dead.
const abandonedAfter = 10 * time.Minute

func writeOwner(dir string, pid int) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	text, err := json.Marshal(owner{Host: host, PID: pid, Started: startOf(pid)})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, ownerName)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// alive reports whether the owner of a directory may still write to it.
func alive(dir string) bool {
	path := filepath.Join(dir, ownerName)
	var o owner
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, &o) != nil {
		o, path = owner{}, dir
	}
	if host, err := os.Hostname(); err != nil || o.Host != host {
		info, err := os.Stat(path)
		return err != nil || time.Since(info.ModTime()) < abandonedAfter
	}
	if o.PID <= 0 {
		return false
	}
	return runs(o.PID) && (o.Started == "" || o.Started == startOf(o.PID))
}

// startOf returns the kernel's boot id and the start time of a process: a process id alone is
// used again. It is empty if they are not known.
func startOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the third field of proc(5) is the first here
	if err != nil || len(fields) < 20 || string(fields[0]) == "Z" || string(fields[0]) == "X" {
		return ""
	}
	return string(bytes.TrimSpace(boot)) + ":" + string(fields[19])
}
