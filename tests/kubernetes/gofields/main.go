// Print how Go's encoder treats the zero value of every field of Kubernetes' API types, as JSON lines.
//
// A field of a pointer type is not printed: its zero value is an absent field. Of the others
//   - "omits" names those that are left out when they are empty, and
//   - "zeros" has the value that is written for an absent field: "", 0, false, null, or {} for a struct.
//
// The names of the types are those of the OpenAPI document.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type fields struct {
	Omits []string       `json:"omits,omitempty"`
	Zeros map[string]any `json:"zeros,omitempty"`
}

var (
	found   = map[string]fields{}
	version = regexp.MustCompile(`^v\d+$`)
)

func main() {
	if err := apiextensions.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	if err := apiregistration.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	for kind, type_ := range scheme.Scheme.AllKnownTypes() {
		if version.MatchString(kind.Version) {
			visit(type_)
		}
	}
	names := make([]string, 0, len(found))
	for name, each := range found {
		if len(each.Omits)+len(each.Zeros) > 0 {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for index, name := range names {
		text, err := json.Marshal(found[name])
		if err != nil {
			panic(err)
		}
		open, end := "", ","
		if index == 0 {
			open = "{\n"
		}
		if index == len(names)-1 {
			end = "\n}"
		}
		fmt.Printf("%s%q: %s%s\n", open, name, text, end)
	}
}

func visit(type_ reflect.Type) {
	switch type_.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		visit(type_.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	name := nameOf(type_)
	if _, ok := found[name]; ok || isValue(type_) {
		return
	}
	found[name] = fields{}
	result := fields{Zeros: map[string]any{}}
	collect(type_, &result)
	sort.Strings(result.Omits)
	found[name] = result
}

func collect(type_ reflect.Type, result *fields) {
	for index := range type_.NumField() {
		field := type_.Field(index)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if name == "" && field.Anonymous {
			collect(field.Type, result)
			continue
		}
		visit(field.Type)
		if name == "apiVersion" || name == "kind" || name == "" {
			continue
		}
		add(field.Type, name, options, result)
	}
}

func add(type_ reflect.Type, name, options string, result *fields) {
	omits := strings.Contains(options, "omitempty")
	switch kind := type_.Kind(); {
	case kind == reflect.Pointer || kind == reflect.Interface:
	case kind == reflect.Struct && strings.Contains(options, "omitzero"):
	case kind == reflect.Struct:
		result.Zeros[name] = zeroOf(type_)
	case omits:
		result.Omits = append(result.Omits, name)
	case kind == reflect.Slice || kind == reflect.Map:
		result.Zeros[name] = nil
	default:
		result.Zeros[name] = reflect.Zero(type_).Interface()
	}
}

func zeroOf(type_ reflect.Type) any {
	if !isValue(type_) {
		return map[string]any{}
	}
	text, err := json.Marshal(reflect.Zero(type_).Interface())
	if err != nil {
		panic(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		panic(err)
	}
	return value
}

// isValue reports whether a struct is written as one scalar, such as a time.
func isValue(type_ reflect.Type) bool {
	marshaler := reflect.TypeFor[json.Marshaler]()
	return type_.Implements(marshaler) || reflect.PointerTo(type_).Implements(marshaler)
}

func nameOf(type_ reflect.Type) string {
	domain, rest, _ := strings.Cut(type_.PkgPath(), "/")
	parts := strings.Split(domain, ".")
	for left, right := 0, len(parts)-1; left < right; left, right = left+1, right-1 {
		parts[left], parts[right] = parts[right], parts[left]
	}
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + type_.Name()
}
