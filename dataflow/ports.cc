#include "dataflow/ports.h"

#include <utility>

#include "base/check.h"
#include "dataflow/rows.h"

namespace weft {

ReplicaPorts::ReplicaPorts(std::vector<Input> inputs, std::vector<Output> outputs,
                           PortsOwner* owner)
    : inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      owner_(owner),
      writes_(uint64_t{1} << 62) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].links.empty()) connected_inputs_ |= uint32_t{1} << i;
  }
  for (const Output& output : outputs_) {
    for (const OutputEdge& edge : output.edges) {
      output_links_.insert(output_links_.end(), edge.links.begin(), edge.links.end());
    }
  }
}

bool ReplicaPorts::Available(const Input& input) {
  for (const Link* link : input.links) {
    if (link->HasMessage() == input.merge) return input.merge;
  }
  return !input.merge;
}

Message ReplicaPorts::Read(int input) {
  WEFT_CHECK(input >= 0 && input < static_cast<int>(inputs_.size()))
      << "there is no input " << input;
  Input& port = inputs_[input];
  const uint32_t bit = uint32_t{1} << input;
  WEFT_CHECK((readable_ & bit) != 0)
      << "reads " << port.name << ", which Needs did not name or this step has read already";
  readable_ &= ~bit;
  if (port.links.empty()) return {};
  if (port.links.size() == 1) return port.links[0]->Pop();
  if (port.merge) {
    Link* oldest = nullptr;
    for (Link* link : port.links) {
      if (link->HasMessage() && (oldest == nullptr || link->HeadStamp() < oldest->HeadStamp()))
        oldest = link;
    }
    return oldest->Pop();
  }
  parts_.clear();
  for (Link* link : port.links) parts_.push_back(link->Pop());
  Message whole = ConcatenateRows(parts_, port.dim, port.mixed_versions, port.edge);
  parts_.clear();
  return whole;
}

void ReplicaPorts::Write(int output, Message message) {
  WEFT_CHECK(output >= 0 && output < static_cast<int>(outputs_.size()))
      << "there is no output " << output;
  Output& port = outputs_[output];
  const uint64_t stamp = writes_++;
  for (size_t e = 0; e < port.edges.size(); ++e) {
    OutputEdge& edge = port.edges[e];
    for (size_t i = 0; i < edge.links.size(); ++i) {
      Link* link = edge.links[i];
      WEFT_CHECK(link->HasRoom()) << "writes more messages to " << port.name << " than "
                                  << edge.readers[i]
                                  << " has room for; one a step is always possible";
      const bool last = e + 1 == port.edges.size() && i + 1 == edge.links.size();
      Message part;
      if (edge.split_dim >= 0) {
        part = SplitRows(message, edge.split_dim, static_cast<int>(i),
                         static_cast<int>(edge.links.size()), edge.edge);
      } else if (last) {
        part = std::move(message);
      } else {
        part = message;
      }
      // Links whose messages have one stamp share one body on the way to another process; blocks
      // differ.
      const uint64_t own = edge.split_dim >= 0 ? writes_++ : stamp;
      link->Push(std::move(part), edge.arrivals.empty() ? own : edge.arrivals[i]->fetch_add(1));
    }
  }
}

bool ReplicaPorts::Connected(int output) const {
  WEFT_CHECK(output >= 0 && output < static_cast<int>(outputs_.size()))
      << "there is no output " << output;
  return !outputs_[output].edges.empty();
}

void ReplicaPorts::CheckNeeds(PortSet needs) const {
  WEFT_CHECK(inputs_.size() >= 32 || needs.bits() >> inputs_.size() == 0)
      << "Needs names an input beyond the " << inputs_.size() << " that there are";
}

void ReplicaPorts::CheckPrimed() const {
  for (const Output& output : outputs_) {
    if (!output.primed) continue;
    for (const OutputEdge& edge : output.edges) {
      for (const Link* link : edge.links) {
        WEFT_CHECK_GT(link->written(), 0u)
            << "the output " << output.name
            << " is declared primed, but Start wrote no message to it";
      }
    }
  }
}

void ReplicaPorts::RestartCutLinks() {
  for (Input& input : inputs_) {
    for (Link* link : input.links) {
      if (!link->cut()) continue;
      link->Restart();
      input.mixed_versions = true;
    }
  }
  for (Link* link : output_links_) {
    if (link->cut()) link->Restart();
  }
}

std::string ReplicaPorts::WaitsFor(uint32_t needs) const {
  std::string reasons;
  const auto add = [&reasons](const std::string& reason) {
    reasons += (reasons.empty() ? "" : "; ") + reason;
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if (((needs & connected_inputs_) >> i & 1) == 0 || Available(input)) continue;
    std::string writers;
    for (size_t w = 0; w < input.links.size(); ++w) {
      if (input.links[w]->HasMessage()) continue;
      writers += (writers.empty() ? "" : ", ") + input.writers[w];
    }
    const bool stale = input.links[0]->newest_only() && input.links[0]->written() > 0;
    add("waits for " + input.name + " from " + writers +
        (stale ? " (the newest is too old)" : " (0 unread)"));
  }
  for (const Output& output : outputs_) {
    for (const OutputEdge& edge : output.edges) {
      for (size_t i = 0; i < edge.links.size(); ++i) {
        if (edge.links[i]->HasRoom()) continue;
        add("its output " + output.name + " is full (" + std::to_string(edge.links[i]->unread()) +
            " of " + std::to_string(edge.links[i]->capacity()) + " unread by " + edge.readers[i] +
            ")");
      }
    }
  }
  return reasons;
}

}  // namespace weft
