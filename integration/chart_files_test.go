package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"
)

const chart = "../deploy/helm/plumbline"

// chartServices are the services of the chart. The console, which asks the others, is the last.
var chartServices = []string{"ingest", "verifier", "drift", "exporter", "webhooks", "console"}

// manifest is the part of a Kubernetes resource that the tests read.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name        string
		Annotations map[string]string
	}
	Data map[string]string
	Spec struct {
		Template    struct{ Spec pod }
		Strategy    struct{ Type string }
		AccessModes []string       `yaml:"accessModes"`
		Selector    map[string]any // of a Service or a Deployment
		ClusterIP   string         `yaml:"clusterIP"`
		NotReady    bool           `yaml:"publishNotReadyAddresses"`
		Ports       []struct {
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Ingress, Egress []rule // of a NetworkPolicy
	}
}

// rule is one of a NetworkPolicy.
type rule struct {
	Ports    []struct{ Port string }
	From, To []peer
}

type peer struct {
	PodSelector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	} `yaml:"podSelector"`
}

type pod struct {
	AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
	EnableServiceLinks            *bool `yaml:"enableServiceLinks"`
	TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		RunAsNonRoot        bool              `yaml:"runAsNonRoot"`
		RunAsUser           int               `yaml:"runAsUser"`
		FSGroupChangePolicy string            `yaml:"fsGroupChangePolicy"`
		SeccompProfile      map[string]string `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	InitContainers []container `yaml:"initContainers"`
	Containers     []container
	Volumes        []volume
}

type container struct {
	Name, Image     string
	Command, Args   []string
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
	Env []struct {
		Name, Value string
		ValueFrom   struct {
			SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	LivenessProbe  probe   `yaml:"livenessProbe"`
	ReadinessProbe probe   `yaml:"readinessProbe"`
	VolumeMounts   []mount `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

type mount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly"`
}

type volume struct {
	Name   string
	Secret *struct {
		SecretName string `yaml:"secretName"`
		Items      []struct{ Key, Path string }
	}
	ConfigMap             *struct{ Name string }   `yaml:"configMap"`
	EmptyDir              *struct{ Medium string } `yaml:"emptyDir"`
	PersistentVolumeClaim *struct {
		ClaimName string `yaml:"claimName"`
	} `yaml:"persistentVolumeClaim"`
}

// helmProgram builds the program of directory helm, which is Helm for a test, and returns its path.
var helmProgram = sync.OnceValues(func() (string, error) {
	if err := build(); err != nil { // makes programDir
		return "", err
	}
	path := filepath.Join(programDir, "helm")
	build := exec.Command("go", "-C", "helm", "build", "-ldflags=-s -w", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make test vets it: so its packages are compiled once
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in integration/helm: %w\n%s", err, output)
	}
	return path, nil
})

// helm runs Helm, and returns what it prints.
func helm(t testing.TB, command string, args ...string) (string, error) {
	t.Helper()
	path, err := helmProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{command, chart}, args...)...)
	var output, faults bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &faults
	if err := cmd.Run(); err != nil {
		return output.String(), fmt.Errorf("helm %s %s: %w\n%s", command, strings.Join(args, " "), err, &faults)
	}
	return output.String(), nil
}

// render returns the resources that the chart makes of a file of values, some of them changed, by "Kind name".
func render(t testing.TB, values string, set ...string) map[string]manifest {
	t.Helper()
	text, err := helm(t, "template", "--values", values, "--set", strings.Join(set, ","))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]manifest{}
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var m manifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return made
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if m.Kind == "" { // a template without a resource
			continue
		}
		name := m.Kind + " " + m.Metadata.Name
		if _, twice := made[name]; twice || m.APIVersion == "" {
			t.Errorf("%s: is there twice, or has no version", name)
		}
		made[name] = m
	}
}

// secrets are the contents of the Secrets and ConfigMaps that values name, by name and key.
type secrets map[string]map[string]string

// mounted writes the files that a container sees below a directory, as the kubelet mounts them and the init container
// copies them, and returns the directory. A claim is a directory that all containers of the test share.
func mounted(t testing.TB, made map[string]manifest, p pod, c container, given secrets, claims string) string {
	t.Helper()
	root := t.TempDir()
	volumes := map[string]volume{}
	for _, v := range p.Volumes {
		volumes[v.Name] = v
	}
	for _, m := range c.VolumeMounts {
		v, ok := volumes[m.Name]
		if !ok {
			t.Fatalf("%s mounts %s, which is no volume of its pod", c.Name, m.Name)
		}
		dir := filepath.Join(root, m.MountPath)
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		switch {
		case v.PersistentVolumeClaim != nil:
			if err := os.Symlink(filepath.Join(claims, v.PersistentVolumeClaim.ClaimName), dir); err != nil {
				t.Fatal(err)
			}
		case v.EmptyDir != nil: // the init container fills it from the Secret
			writeFiles(t, dir+"-secret", given[volumes["keys-secret"].Secret.SecretName], 0o440)
			command := p.InitContainers[0].Command
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			script := strings.ReplaceAll(command[2], "/etc/plumbline/", root+"/etc/plumbline/")
			if output, err := exec.CommandContext(t.Context(), command[0], command[1], script).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", command, err, output)
			}
		case v.ConfigMap != nil:
			contents := made["ConfigMap "+v.ConfigMap.Name].Data
			if contents == nil {
				contents = given[v.ConfigMap.Name]
			}
			writeFiles(t, dir, contents, 0o444)
		case v.Secret != nil:
			contents := given[v.Secret.SecretName]
			if len(v.Secret.Items) > 0 {
				contents = map[string]string{}
				for _, item := range v.Secret.Items {
					contents[item.Path] = given[v.Secret.SecretName][item.Key]
				}
			}
			mode := os.FileMode(0o440)
			if v.Name == "tokens" { // the group may read it where root owns it, and the service is not root (auth.TestProtectionOfTokenFiles)
				mode = 0o400
			}
			writeFiles(t, dir, contents, mode)
		default:
			t.Fatalf("volume %s of %s is of no kind that the test knows", v.Name, c.Name)
		}
	}
	return root
}

func writeFiles(t testing.TB, dir string, contents map[string]string, mode os.FileMode) {
	t.Helper()
	if len(contents) == 0 {
		t.Fatalf("%s is mounted from a Secret or ConfigMap that is not there", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}
