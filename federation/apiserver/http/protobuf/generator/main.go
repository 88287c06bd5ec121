// Writes ../messages.json: the protobuf layout and the JSON names of every object that a typed Go client may send.
//
// Run with `go run . > ../messages.json` after a change of the module versions in go.mod. The layout comes from the
// struct tags of k8s.io/api, so that what Python makes of a protobuf body equals what encoding/json makes of the struct.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Types whose JSON is not that of their fields; the decoder knows them by these names.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                         "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "raw",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "raw",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "intorstring",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "quantity",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "schemaorbool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "schemaorarray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "schemaorstrings",
}

var messages = map[string][][]any{}

func fullName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

func shortName(t reflect.Type) string {
	path := strings.TrimPrefix(t.PkgPath(), "k8s.io/")
	return path + "." + t.Name()
}

// kind names how one value is read: a scalar, a special type, or "m:" and a message's name.
func kind(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if name, ok := special[fullName(t)]; ok {
		return name
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64, reflect.Int, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return "int"
	case reflect.Float32:
		return "float"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if t.Name() != "" && t.Elem().Kind() == reflect.String {
			return "items" // a named []string is a message with one repeated field
		}
	case reflect.Struct:
		describe(t)
		return "m:" + shortName(t)
	}
	panic("no protobuf form: " + t.String())
}

// describe adds a message: [number, JSON name ("" inline), kind, form, omit] for each field. Form is 1 for a value that
// is always written, 2 for a pointer, 3 for a list, 4 for a map from strings; omit is 1 for omitempty, 2 for omitzero.
func describe(t reflect.Type) {
	name := shortName(t)
	if _, known := messages[name]; known {
		return
	}
	messages[name] = nil
	fields := [][]any{}
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag, ok := field.Tag.Lookup("protobuf")
		if !ok || tag == "-" {
			continue
		}
		number, err := strconv.Atoi(strings.Split(tag, ",")[1])
		if err != nil {
			panic(err)
		}
		parts := strings.Split(field.Tag.Get("json"), ",")
		omit := 0
		for _, option := range parts[1:] {
			if option == "omitempty" && omit == 0 {
				omit = 1
			}
			if option == "omitzero" {
				omit = 2
			}
		}
		form, value := 1, field.Type
		switch {
		case value.Kind() == reflect.Pointer:
			form = 2
		case value.Kind() == reflect.Slice && value.Elem().Kind() != reflect.Uint8 && special[fullName(value)] == "":
			form, value = 3, value.Elem()
		case value.Kind() == reflect.Map:
			form, value = 4, value.Elem()
		}
		fields = append(fields, []any{number, parts[0], kind(value), form, omit})
	}
	messages[name] = fields
}

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme, authorization.AddToScheme,
		autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batch.AddToScheme, certificates.AddToScheme,
		coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme, events.AddToScheme, networking.AddToScheme,
		policy.AddToScheme, rbac.AddToScheme, scheduling.AddToScheme, storage.AddToScheme, apiextensions.AddToScheme,
		flowcontrol.AddToScheme, node.AddToScheme, resource.AddToScheme, apiregistration.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	kinds := map[string]string{}
	for gvk, t := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || isUnsent(gvk) {
			continue
		}
		describe(t)
		kinds[gvk.GroupVersion().String()+"/"+gvk.Kind] = shortName(t)
	}
	for _, fields := range messages {
		sort.Slice(fields, func(i, j int) bool { return fields[i][0].(int) < fields[j][0].(int) })
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{"kinds": kinds, "messages": messages}); err != nil {
		panic(err)
	}
}

// isUnsent tells which registered types are never a request's body: lists, query options and watch events.
func isUnsent(gvk schema.GroupVersionKind) bool {
	if strings.HasSuffix(gvk.Kind, "List") || gvk.Kind == "WatchEvent" {
		return true
	}
	return strings.HasSuffix(gvk.Kind, "Options") && gvk.Kind != "DeleteOptions"
}
