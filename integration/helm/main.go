// Command helm is what the tests of the chart need of Helm, made of Helm's own packages: to build the whole of Helm takes
// almost twice the CPU time.
//
//	helm lint|template|notes CHART [--values FILE] [--set KEY=VALUE]
//
// It prints and refuses what Helm does for release evidence in namespace agents. lint fails at a warning, too. template also
// reads each resource as Kubernetes does, and refuses a field that its type does not have.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: helm lint|template|notes CHART [--values FILE] [--set KEY=VALUE]")
	}
	command, chart, values := args[0], args[1], map[string]any{}
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.Func("values", "a file of values", func(file string) error {
		read, err := common.ReadValuesFile(file)
		values = loader.MergeMaps(values, read)
		return err
	})
	flags.Func("set", "a value", func(pair string) error { return strvals.ParseInto(pair, values) })
	if err := flags.Parse(args[2:]); err != nil {
		return err
	}
	switch command {
	case "lint":
		return lintChart(chart, values)
	case "template":
		return template(chart, values)
	case "notes":
		_, notes, err := render(chart, values)
		fmt.Print(notes)
		return err
	}
	return fmt.Errorf("there is no command %s", command)
}

func lintChart(chart string, values map[string]any) error {
	result := lint.RunAll(chart, values, "agents")
	for _, m := range result.Messages {
		fmt.Println(m)
	}
	if result.HighestSeverity >= support.WarningSev {
		return errors.New("the chart has faults")
	}
	return nil
}

// render returns the text of each template, by its path, and what Helm prints after an installation.
func render(path string, values map[string]any) (templates map[string]string, notes string, err error) {
	chart, err := loader.Load(path)
	if err != nil {
		return nil, "", err
	}
	release := common.ReleaseOptions{Name: "evidence", Namespace: "agents", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	if templates, err = engine.Render(chart, all); err != nil {
		return nil, "", err
	}
	name := chart.Name() + "/templates/NOTES.txt"
	notes = templates[name]
	delete(templates, name)
	return templates, notes, nil
}

func template(chart string, values map[string]any) error {
	rendered, _, err := render(chart, values)
	if err != nil {
		return err
	}
	hooks, manifests, err := releaseutil.SortManifests(rendered, common.DefaultVersionSet, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	var resources []string
	for _, h := range hooks {
		resources = append(resources, h.Manifest)
	}
	for _, m := range manifests {
		resources = append(resources, m.Content)
	}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, text := range resources {
		if _, _, err := strict.Decode([]byte(text), nil, nil); err != nil {
			return fmt.Errorf("%w\n%s", err, text)
		}
	}
	fmt.Println("---\n" + strings.Join(resources, "\n---\n"))
	return nil
}
