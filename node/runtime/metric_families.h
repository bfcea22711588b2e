// Collects metrics, family by family, and writes them as text. One thread.
#ifndef PANDO_NODE_RUNTIME_METRIC_FAMILIES_H_
#define PANDO_NODE_RUNTIME_METRIC_FAMILIES_H_

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pando::runtime {

using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

// A value is exact up to 2^53, as everything in Prometheus is.
class Families {
 public:
  void Add(const std::string& name, const char* help, prometheus::MetricType type) {
    families_.push_back({"pando_" + name, help, type, {}});
  }
  // Another value of the last family.
  void Value(uint64_t value, MetricLabels labels = {}) {
    Real(static_cast<double>(value), std::move(labels));
  }
  void Real(double value, MetricLabels labels = {}) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    if (families_.back().type == prometheus::MetricType::Counter) metric.counter.value = value;
    if (families_.back().type == prometheus::MetricType::Gauge) metric.gauge.value = value;
    families_.back().metric.push_back(std::move(metric));
  }
  void Counter(const std::string& name, const char* help, uint64_t value) {
    Add(name, help, prometheus::MetricType::Counter);
    Value(value);
  }
  void Gauge(const std::string& name, const char* help, uint64_t value) {
    Add(name, help, prometheus::MetricType::Gauge);
    Value(value);
  }
  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_METRIC_FAMILIES_H_
