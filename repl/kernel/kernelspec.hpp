// What Jupyter is told of the kernel: how to start it, and what language its notebooks have.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace slope::repl {

nlohmann::ordered_json language_info();
// Writes the kernelspec below `folder` ("…/share/jupyter"), and prints where. Throws std::exception when it cannot.
void install_kernelspec(const std::string& folder);
std::string user_data_folder();  // of Jupyter

}  // namespace slope::repl
