// Run Kubernetes' own autoscaler once for each case on standard input, and print what it did: one JSON line each.
//
// A case has the autoscaler, the scale and the pods of its target, the metrics, and what the autoscaler recommended and
// did before. Metrics are served by fake clients; everything else is the controller of kube-controller-manager. Times in
// a case are relative to its "now" and are moved to the present.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"time"
	"unsafe"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

type podMetric struct {
	// Milli-units by container and resource.
	Containers map[string]map[string]int64 `json:"containers"`
	AgeS       float64                     `json:"age_s"`
	WindowS    float64                     `json:"window_s"`
}

type podValue struct {
	Value   int64   `json:"value"`
	AgeS    float64 `json:"age_s"`
	WindowS float64 `json:"window_s"`
}

type change struct {
	AgeS  float64 `json:"age_s"`
	Count int32   `json:"count"`
}

type testCase struct {
	Now             metav1.Time                           `json:"now"`
	Autoscaler      autoscalingv2.HorizontalPodAutoscaler `json:"autoscaler"`
	Scale           autoscalingv1.Scale                   `json:"scale"`
	Pods            []v1.Pod                              `json:"pods"`
	Resources       map[string]podMetric                  `json:"resources"`
	PodMetrics      map[string]map[string]podValue        `json:"pod_metrics"`
	ObjectMetrics   map[string]int64                      `json:"object_metrics"`
	ExternalMetrics map[string][]int64                    `json:"external_metrics"`
	Recommendations []change                              `json:"recommendations"`
	ScaledUp        []change                              `json:"scaled_up"`
	ScaledDown      []change                              `json:"scaled_down"`
}

type outcome struct {
	Replicas int32                                       `json:"replicas"`
	Status   autoscalingv2.HorizontalPodAutoscalerStatus `json:"status"`
}

// As in the controller.
type recommendation struct {
	recommendation int32
	timestamp      time.Time
}

type scaleEvent struct {
	replicaChange int32
	timestamp     time.Time
	outdated      bool
}

//go:linkname reconcileKey k8s.io/kubernetes/pkg/controller/podautoscaler.(*HorizontalController).reconcileKey
func reconcileKey(a *podautoscaler.HorizontalController, ctx context.Context, key string) (bool, error)

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		var given testCase
		check(json.Unmarshal(input.Bytes(), &given))
		check(output.Encode(run(&given)))
	}
	check(input.Err())
}

func run(given *testCase) outcome {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	now := time.Now()
	autoscaler := &given.Autoscaler
	legacyscheme.Scheme.Default(autoscaler)
	client := fake.NewClientset(autoscaler)
	factory := informers.NewSharedInformerFactory(client, 0)
	autoscalers := factory.Autoscaling().V2().HorizontalPodAutoscalers()
	pods := factory.Core().V1().Pods()
	check(autoscalers.Informer().GetIndexer().Add(autoscaler))
	for index := range given.Pods {
		pod := &given.Pods[index]
		move(pod, now.Sub(given.Now.Time))
		check(pods.Informer().GetIndexer().Add(pod))
	}
	scales := &scalefake.FakeScaleClient{}
	scales.AddReactor("get", "*", func(core.Action) (bool, runtime.Object, error) { return true, given.Scale.DeepCopy(), nil })
	replicas := given.Scale.Spec.Replicas
	scales.AddReactor("update", "*", func(action core.Action) (bool, runtime.Object, error) {
		scale := action.(core.UpdateAction).GetObject().(*autoscalingv1.Scale)
		replicas = scale.Spec.Replicas
		return true, scale, nil
	})
	controller := podautoscaler.NewHorizontalController(
		ctx, client.CoreV1(), scales, client.AutoscalingV2(), testrestmapper.TestOnlyStaticRESTMapper(legacyscheme.Scheme),
		&source{given, now}, autoscalers, pods, 15*time.Second, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second,
	)
	key := autoscaler.Namespace + "/" + autoscaler.Name
	for _, each := range given.Recommendations {
		known := field[map[string][]recommendation](controller, "recommendations")
		known[key] = append(known[key], recommendation{each.Count, before(now, each.AgeS)})
	}
	for name, events := range map[string][]change{"scaleUpEvents": given.ScaledUp, "scaleDownEvents": given.ScaledDown} {
		known := field[map[string][]scaleEvent](controller, name)
		for _, each := range events {
			known[key] = append(known[key], scaleEvent{each.Count, before(now, each.AgeS), false})
		}
	}
	// Its error is in the status.
	_, _ = reconcileKey(controller, ctx, key)
	found, err := client.AutoscalingV2().HorizontalPodAutoscalers(autoscaler.Namespace).Get(ctx, autoscaler.Name, metav1.GetOptions{})
	check(err)
	return outcome{replicas, found.Status}
}

// source answers for the metrics of one case.
type source struct {
	given *testCase
	now   time.Time
}

func (s *source) GetResourceMetric(_ context.Context, name v1.ResourceName, _ string, _ labels.Selector, container string) (metrics.PodMetricsInfo, time.Time, error) {
	found := metrics.PodMetricsInfo{}
	for pod, metric := range s.given.Resources {
		value, known := use(metric, string(name), container)
		if known {
			found[pod] = s.metric(value, metric.AgeS, metric.WindowS)
		}
	}
	if len(s.given.Resources) == 0 {
		return nil, time.Time{}, fmt.Errorf("no metrics returned from resource metrics API")
	}
	return found, s.now, nil
}

// use returns the use of a container, or of all for "". Pods with a container that was not measured have no metric.
func use(metric podMetric, resource, container string) (int64, bool) {
	if container != "" {
		value, known := metric.Containers[container][resource]
		return value, known
	}
	total := int64(0)
	for _, amounts := range metric.Containers {
		value, known := amounts[resource]
		if !known {
			return 0, false
		}
		total += value
	}
	return total, len(metric.Containers) > 0
}

func (s *source) GetRawMetric(name string, _ string, _ labels.Selector, _ labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	values := s.given.PodMetrics[name]
	if len(values) == 0 {
		return nil, time.Time{}, fmt.Errorf("no metrics returned from custom metrics API")
	}
	found := metrics.PodMetricsInfo{}
	for pod, value := range values {
		found[pod] = s.metric(value.Value, value.AgeS, value.WindowS)
	}
	return found, s.now, nil
}

func (s *source) GetObjectMetric(name string, _ string, _ *autoscalingv2.CrossVersionObjectReference, _ labels.Selector) (int64, time.Time, error) {
	value, known := s.given.ObjectMetrics[name]
	if !known {
		return 0, time.Time{}, fmt.Errorf("unable to fetch metrics from custom metrics API")
	}
	return value, s.now, nil
}

func (s *source) GetExternalMetric(name string, _ string, _ labels.Selector) ([]int64, time.Time, error) {
	values := s.given.ExternalMetrics[name]
	if len(values) == 0 {
		return nil, time.Time{}, fmt.Errorf("no metrics returned from external metrics API")
	}
	return values, s.now, nil
}

func (s *source) metric(value int64, ageS, windowS float64) metrics.PodMetric {
	return metrics.PodMetric{Timestamp: before(s.now, ageS), Window: seconds(windowS), Value: value}
}

// move shifts the times of a pod's status.
func move(pod *v1.Pod, by time.Duration) {
	if pod.Status.StartTime != nil {
		pod.Status.StartTime.Time = pod.Status.StartTime.Add(by)
	}
	for index := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[index]
		condition.LastTransitionTime.Time = condition.LastTransitionTime.Add(by)
	}
}

// field returns a field of the controller that its package keeps to itself.
func field[T any](controller *podautoscaler.HorizontalController, name string) T {
	value := reflect.ValueOf(controller).Elem().FieldByName(name)
	return *(*T)(unsafe.Pointer(value.UnsafeAddr()))
}

func before(now time.Time, ageS float64) time.Time { return now.Add(-seconds(ageS)) }

func seconds(count float64) time.Duration { return time.Duration(count * float64(time.Second)) }

func check(err error) {
	if err != nil {
		panic(err)
	}
}
