// Package deploy_test reads every manifest, the compose file and the Dockerfile, and
// checks that they agree with one another and with the program: a setting that is
// spelled wrong in a manifest is silent until the day it is needed.
package deploy_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"foyer/internal/config"
)

// documents reads every YAML document of a file and decodes it by its kind, strictly.
func documents(t *testing.T, file string) []any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []any
	for nodes := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		err := nodes.Decode(&node)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, file)
		var head struct {
			Kind string `yaml:"kind"`
		}
		require.NoError(t, node.Decode(&head), file)
		into, known := kinds()[head.Kind]
		require.True(t, known, "%s: no check for kind %q", file, head.Kind)
		strictly(t, file, &node, into)
		all = append(all, into)
	}
}

// strictly decodes a node and refuses fields that the target does not have.
func strictly(t *testing.T, file string, node *yaml.Node, into any) {
	t.Helper()
	text, err := yaml.Marshal(node)
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(into), file)
}

// manifests are all documents of deploy/kubernetes, decoded.
func manifests(t *testing.T) []any {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []any
	for _, file := range files {
		all = append(all, documents(t, file)...)
	}
	return all
}

func of[T any](all []any) []T {
	var some []T
	for _, one := range all {
		if match, ok := one.(T); ok {
			some = append(some, match)
		}
	}
	return some
}

// commands are the subcommands that the binary has, read from its command line's type.
func commands(t *testing.T) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../cmd/foyer/main.go", nil, 0)
	require.NoError(t, err)
	var names []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		field, ok := node.(*ast.Field)
		if !ok || field.Tag == nil || len(field.Names) != 1 {
			return true
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
		if _, isCommand := tag.Lookup("cmd"); isCommand {
			name := tag.Get("name")
			if name == "" {
				name = strings.ToLower(field.Names[0].Name)
			}
			names = append(names, name)
		}
		return true
	})
	require.NotEmpty(t, names)
	return names
}

// load checks settings exactly as the program does at its start.
func load(t *testing.T, role config.Role, environment map[string]string) config.Config {
	t.Helper()
	var flags config.Flags
	fields := reflect.ValueOf(&flags).Elem()
	unknown := map[string]bool{}
	for name := range environment {
		unknown[name] = true
	}
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Tag.Get("env")
		if value, ok := environment[name]; ok {
			fields.Field(i).SetString(value)
			delete(unknown, name)
		}
	}
	require.Empty(t, unknown, "the program does not know these settings")
	settings, err := flags.Load(role)
	require.NoError(t, err)
	return settings
}

func TestKustomizationNamesEveryManifest(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	kustomizations := of[*kustomization](all)
	require.Len(t, kustomizations, 1)
	files, err := filepath.Glob("kubernetes/*.yaml")
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" {
			names = append(names, name)
		}
	}
	require.ElementsMatch(t, names, kustomizations[0].Resources)
	require.Equal(t, kustomizations[0].Namespace, of[*namespace](all)[0].Metadata.Name)
}

// workload is what a Deployment and a Job have in common.
type workload struct {
	name string
	pod  podTemplate
}

func workloads(t *testing.T) []workload {
	t.Helper()
	all := manifests(t)
	var some []workload
	for _, d := range of[*deployment](all) {
		require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Metadata.Labels, d.Metadata.Name)
		some = append(some, workload{d.Metadata.Name, d.Spec.Template})
	}
	for _, j := range of[*job](all) {
		some = append(some, workload{j.Metadata.Name, j.Spec.Template})
	}
	require.Len(t, some, 3)
	return some
}

// TestContainersRunWhatTheBinaryHas: the image's name, the subcommand, and settings that
// the program accepts for that role, with the secret's keys that the README lists.
func TestContainersRunWhatTheBinaryHas(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{
		"redis-url": "redis://redis:6379", "database-url": "postgres://postgres/foyer", "jwt-secret": "secret",
		"jwks": "", "signing-key": strings.Repeat("0f", 32),
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	settings := of[*configMap](manifests(t))[0]
	for _, w := range workloads(t) {
		require.Len(t, w.pod.Spec.Containers, 1, w.name)
		c := w.pod.Spec.Containers[0]
		require.Equal(t, imageName(t), c.Image, w.name)
		require.Len(t, c.Args, 1, w.name)
		require.Contains(t, commands(t), c.Args[0], w.name)
		environment := map[string]string{}
		for _, from := range c.EnvFrom {
			require.Equal(t, settings.Metadata.Name, from.ConfigMapRef.Name, w.name)
			for name, value := range settings.Data {
				environment[name] = value
			}
		}
		for _, variable := range c.Env {
			key := variable.ValueFrom.SecretKeyRef.Key
			value, known := secrets[key]
			require.True(t, known, "%s: %s", w.name, key)
			require.Contains(t, string(readme), "`"+key+"`")
			environment[variable.Name] = value
		}
		load(t, config.Role(c.Args[0]), environment)
	}
}

// imageName is the name that the manifests and the compose file agree on.
func imageName(t *testing.T) string {
	t.Helper()
	images := of[*kustomization](manifests(t))[0].Images
	require.Len(t, images, 1)
	return images[0].Name
}

// TestProbesAskRoutesThatExist: the API's are in its own description, which its tests
// hold against the running server; the worker's are what its setting promises.
func TestProbesAskRoutesThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../api/openapi.yaml")
	require.NoError(t, err)
	var description struct {
		Paths map[string]any `yaml:"paths"`
	}
	require.NoError(t, yaml.Unmarshal(text, &description))
	metrics, _ := reflect.TypeFor[config.Flags]().FieldByName("MetricsAddr")
	for _, w := range workloads(t) {
		c := w.pod.Spec.Containers[0]
		if len(c.Ports) == 0 {
			continue
		}
		require.NotNil(t, c.ReadinessProbe, w.name)
		require.NotNil(t, c.LivenessProbe, w.name)
		paths := []string{c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path}
		paths = append(paths, w.pod.Metadata.Annotations["prometheus.io/path"])
		for _, path := range paths {
			if c.Args[0] == string(config.RoleAPI) {
				require.Contains(t, description.Paths, path, w.name)
			} else {
				require.Contains(t, metrics.Tag.Get("help"), path, w.name)
			}
		}
		require.Equal(t, c.Ports[0].Name, c.ReadinessProbe.HTTPGet.Port)
		require.Equal(t, c.Ports[0].Name, c.LivenessProbe.HTTPGet.Port)
	}
}

// TestPortsAgree: what the program listens on is what containers, probes, services and
// scrapers name.
func TestPortsAgree(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	data := of[*configMap](all)[0].Data
	port := map[string]string{"api": after(data["FOYER_HTTP_ADDR"]), "worker": after(data["FOYER_METRICS_ADDR"])}
	for _, w := range workloads(t) {
		c := w.pod.Spec.Containers[0]
		for _, p := range c.Ports {
			require.Equal(t, port[c.Args[0]], p.ContainerPort, w.name)
			require.Equal(t, p.ContainerPort, w.pod.Metadata.Annotations["prometheus.io/port"], w.name)
		}
	}
	for _, s := range of[*service](all) {
		i := slices.IndexFunc(workloads(t), func(w workload) bool { return w.name == s.Metadata.Name })
		require.GreaterOrEqual(t, i, 0, s.Metadata.Name)
		pod := workloads(t)[i].pod
		require.Equal(t, pod.Metadata.Labels, s.Spec.Selector)
		require.Equal(t, pod.Spec.Containers[0].Ports[0].Name, s.Spec.Ports[0].TargetPort)
	}
	for _, b := range of[*disruptionBudget](all) {
		i := slices.IndexFunc(workloads(t), func(w workload) bool { return w.name == b.Metadata.Name })
		require.GreaterOrEqual(t, i, 0, b.Metadata.Name)
		require.Equal(t, workloads(t)[i].pod.Metadata.Labels, b.Spec.Selector.MatchLabels)
	}
}

func after(address string) string {
	_, port, _ := strings.Cut(address, ":")
	return port
}

// TestStoppingHasTime: sockets are closed over up to 45 s after the balancer has let go;
// a process that is killed before gives its clients 1006 instead of 1012.
func TestStoppingHasTime(t *testing.T) {
	t.Parallel()
	const drainSeconds = 45
	for _, w := range workloads(t) {
		spec, c := w.pod.Spec, w.pod.Spec.Containers[0]
		switch c.Args[0] {
		case string(config.RoleAPI):
			require.NotNil(t, c.Lifecycle, w.name)
			require.Greater(t, spec.TerminationGracePeriodSeconds, c.Lifecycle.PreStop.Sleep.Seconds+drainSeconds)
		case string(config.RoleWorker):
			require.Greater(t, spec.TerminationGracePeriodSeconds, 20)
		}
	}
}

// TestContainersAreConfined: not root, nothing to write to, no capability, no token.
func TestContainersAreConfined(t *testing.T) {
	t.Parallel()
	for _, w := range workloads(t) {
		spec, c := w.pod.Spec, w.pod.Spec.Containers[0]
		require.NotNil(t, spec.AutomountServiceAccountToken, w.name)
		require.False(t, *spec.AutomountServiceAccountToken, w.name)
		require.True(t, spec.SecurityContext.RunAsNonRoot, w.name)
		require.True(t, c.SecurityContext.ReadOnlyRootFilesystem, w.name)
		require.Equal(t, []string{"ALL"}, c.SecurityContext.Capabilities.Drop, w.name)
		require.NotEmpty(t, c.Resources.Limits["memory"], w.name)
	}
}

// S48, S49: a scaler that looked at pending entries alone never saw a backlog, and one
// entry alone did not wake it. Each group is watched by lag, from the first entry, and by
// pending, under the names that the workers use.
func TestScalerWatchesOurStreams(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	scaled := of[*scaledObject](all)
	require.Len(t, scaled, 1)
	spec := scaled[0].Spec
	require.Equal(t, "foyer-worker", spec.ScaleTargetRef.Name)
	require.GreaterOrEqual(t, spec.MinReplicaCount, 2, "each interval's admission step is sent by a worker")
	auth := of[*triggerAuthentication](all)[0]
	names := eventNames(t)
	watched := map[string]int{}
	for _, trigger := range spec.Triggers {
		require.Equal(t, auth.Metadata.Name, trigger.AuthenticationRef.Name)
		stream, group := trigger.Metadata["stream"], trigger.Metadata["consumerGroup"]
		require.True(t, slices.Contains(names, stream), "package events has no stream %q", stream)
		require.True(t, slices.Contains(names, group), "package events has no group %q", group)
		_, lag := trigger.Metadata["lagCount"]
		require.True(t, !lag || trigger.Metadata["activationLagCount"] == "0", trigger.Name)
		_, pending := trigger.Metadata["pendingEntriesCount"]
		require.True(t, lag != pending, "%s: one number a trigger", trigger.Name)
		watched[stream]++
	}
	require.Equal(t, map[string]int{"commands.admission": 2, "commands.booking": 2, "chat_read_stream": 2}, watched)
}

// eventNames are the string literals of package events, among them its streams and groups.
func eventNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../events/*.go")
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				names = append(names, strings.Trim(literal.Value, "`\""))
			}
			return true
		})
	}
	return names
}

// TestDockerfileBuildsWhatIsRun: the entry point is what was built, from the Go version
// of go.mod, without root.
func TestDockerfileBuildsWhatIsRun(t *testing.T) {
	t.Parallel()
	dockerfile := read(t, "../Dockerfile")
	gomod := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	require.Contains(t, dockerfile, "FROM golang:"+gomod[1]+"-")
	require.Contains(t, dockerfile, "-o /foyer ./cmd/foyer")
	require.Contains(t, dockerfile, "COPY --from=build /foyer /foyer")
	require.Contains(t, dockerfile, `ENTRYPOINT ["/foyer"]`)
	require.Contains(t, dockerfile, "USER 65532")
	require.Contains(t, dockerfile, "CGO_ENABLED=0")
	command := regexp.MustCompile(`CMD \["(\w+)"\]`).FindStringSubmatch(dockerfile)
	require.Contains(t, commands(t), command[1])
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// TestComposeFileRunsTheProgram: as it stands, with its demo values, every service's
// settings are accepted for its role, and Redis keeps what it knows.
func TestComposeFileRunsTheProgram(t *testing.T) {
	t.Parallel()
	var node yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "../docker-compose.yml")), &node))
	var compose composeFile
	strictly(t, "docker-compose.yml", &node, &compose)
	// A default is what stands after ":-", for an environment that names nothing.
	byDefault := regexp.MustCompile(`\$\{\w+:-([^}]*)\}`)
	for name, s := range compose.Services {
		for needed := range s.DependsOn {
			require.Contains(t, compose.Services, needed, name)
		}
		if s.Image != imageName(t) {
			require.NotNil(t, s.HealthCheck, name)
			continue
		}
		require.Len(t, s.Command, 1, name)
		require.Contains(t, commands(t), s.Command[0])
		environment := map[string]string{}
		for key, value := range s.Environment {
			environment[key] = byDefault.ReplaceAllString(value, "$1")
		}
		load(t, config.Role(s.Command[0]), environment)
	}
	redis := strings.Join(compose.Services["redis"].Command, " ")
	require.Contains(t, redis, "--appendonly yes")
	require.Contains(t, redis, "--maxmemory-policy noeviction")
	require.Contains(t, compose.Services, "migrate")
	require.GreaterOrEqual(t, compose.Services["api"].Deploy.Replicas, 2)
}
