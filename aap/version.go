package aap

// What a verdict says about its origin.
const (
	EngineVersion    = "plumbline-3" // changes whenever any verdict could
	AlgorithmVersion = "1.2.0"       // of the published algorithm whose features we use
	ProfileSpec      = "spec"
)
