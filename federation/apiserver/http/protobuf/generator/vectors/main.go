// Writes objects of every kind, filled at random from a fixed seed, as protobuf and as what encoding/json makes of them:
// `go run ./vectors 1 14 > ../../../../tests/unit/server/protobuf_vectors.jsonl`. The Python decoder is tested with them.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

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
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

func main() {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme, authorization.AddToScheme,
		autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batch.AddToScheme, certificates.AddToScheme,
		coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme, events.AddToScheme, networking.AddToScheme,
		policy.AddToScheme, rbac.AddToScheme, scheduling.AddToScheme, storage.AddToScheme, apiextensions.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	seed := int64(1)
	rounds := 1
	if len(os.Args) > 1 {
		fmt.Sscan(os.Args[1], &rounds)
	}
	depth := 12
	if len(os.Args) > 2 {
		fmt.Sscan(os.Args[2], &depth)
	}
	var gvks []schema.GroupVersionKind
	for gvk := range s.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || strings.HasSuffix(gvk.Kind, "List") || gvk.Kind == "WatchEvent" {
			continue
		}
		if strings.HasSuffix(gvk.Kind, "Options") && gvk.Kind != "DeleteOptions" {
			continue
		}
		gvks = append(gvks, gvk)
	}
	sort.Slice(gvks, func(i, j int) bool { return gvks[i].String() < gvks[j].String() })
	ser := protobuf.NewSerializer(s, s)
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	for round := 0; round < rounds; round++ {
		for _, gvk := range gvks {
			seed++
			r := rand.New(rand.NewSource(seed))
			f := randfill.New().RandSource(rand.NewSource(seed)).NilChance(0.55).NumElements(0, 2).MaxDepth(depth).Funcs(
				func(t *metav1.Time, c randfill.Continue) {
					if r.Intn(3) > 0 {
						*t = metav1.Time{Time: time.Unix(r.Int63n(1<<31), 0).UTC()}
					}
				},
				func(t *metav1.MicroTime, c randfill.Continue) {
					*t = metav1.MicroTime{Time: time.Unix(r.Int63n(1<<31), 1000*r.Int63n(1000000)).UTC()}
				},
				func(t *metav1.Duration, c randfill.Continue) { t.Duration = time.Duration(r.Int63n(1 << 45)) },
				func(q *resource.Quantity, c randfill.Continue) {
					*q = resource.MustParse(fmt.Sprintf("%dm", r.Intn(5000)))
				},
				func(q *intstr.IntOrString, c randfill.Continue) {
					if r.Intn(2) == 0 {
						*q = intstr.FromInt32(r.Int31n(100))
					} else {
						*q = intstr.FromString("25%")
					}
				},
				func(q *runtime.RawExtension, c randfill.Continue) { q.Raw = []byte(`{"a":[1,2]}`) },
				func(q *runtime.Object, c randfill.Continue) {},
				func(q *apiextensions.JSON, c randfill.Continue) { q.Raw = []byte(`{"d":"x"}`) },
				func(q *metav1.FieldsV1, c randfill.Continue) { q.Raw = []byte(`{"f:metadata":{}}`) },
				func(q *metav1.TypeMeta, c randfill.Continue) {},
				func(q *string, c randfill.Continue) {
					if r.Intn(4) > 0 {
						*q = []string{"a", "bé", "x-y", "long text"}[r.Intn(4)]
					}
				},
				func(q *[]byte, c randfill.Continue) { *q = []byte{1, 2, byte(r.Intn(255))} },
				func(q *apiextensions.JSONSchemaPropsOrBool, c randfill.Continue) {
					if r.Intn(2) == 0 {
						q.Allows = true
					} else {
						q.Allows = true
						q.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
					}
				},
				func(q *apiextensions.JSONSchemaPropsOrArray, c randfill.Continue) {
					if r.Intn(2) == 0 {
						q.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
					} else {
						q.JSONSchemas = []apiextensions.JSONSchemaProps{{Type: "a"}, {Type: "b"}}
					}
				},
				func(q *apiextensions.JSONSchemaPropsOrStringArray, c randfill.Continue) {
					if r.Intn(2) == 0 {
						q.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
					} else {
						q.Property = []string{"p", "q"}
					}
				},
			)
			t := s.AllKnownTypes()[gvk]
			v := reflect.New(t)
			f.Fill(v.Interface())
			obj := v.Interface().(runtime.Object)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			var b strings.Builder
			if err := ser.Encode(obj, &b); err != nil {
				fmt.Fprintln(os.Stderr, gvk, err)
				continue
			}
			back, _, err := ser.Decode([]byte(b.String()), nil, nil)
			if err != nil {
				fmt.Fprintln(os.Stderr, gvk, "back", err)
				continue
			}
			back.GetObjectKind().SetGroupVersionKind(gvk)
			j, err := json.Marshal(back)
			if err != nil {
				fmt.Fprintln(os.Stderr, gvk, "json", err)
				continue
			}
			enc.Encode(map[string]any{"protobuf": base64.StdEncoding.EncodeToString([]byte(b.String())), "json": json.RawMessage(j)})
		}
	}
}
