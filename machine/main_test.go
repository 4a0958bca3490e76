package machine_test

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

func TestMain(m *testing.M) { pipelinetest.Main(m) }
