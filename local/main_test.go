package local_test

import (
	"os"
	"testing"

	"github.com/plumbline/plumbline/child"
)

func TestMain(m *testing.M) {
	child.Dispatch()
	os.Exit(m.Run())
}
