// Core.picture_png: drawing commands as a PNG, for savefig.
//
// Cairo draws, sets letters and writes the file format; libpng would do only the last. It is loaded when the first
// picture is made: linking it would add several milliseconds to every start, and a machine that draws nothing does not
// need it. https://www.cairographics.org/manual/; Cairo has had the functions below since 1.0.
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "lang/support/loaded_library.hpp"
#include "stdlib/native/native.hpp"
#include "tools/tools.hpp"

namespace slope::api::detail {

namespace {

using stdlib::Call;

struct CairoTextExtents {
  double x_bearing, y_bearing, width, height, x_advance, y_advance;
};

struct Cairo {
  void* (*image_surface_create)(int format, int width, int height) = nullptr;
  void* (*create)(void* surface) = nullptr;
  void (*set_source_rgb)(void*, double, double, double) = nullptr;
  void (*set_line_width)(void*, double) = nullptr;
  void (*move_to)(void*, double, double) = nullptr;
  void (*line_to)(void*, double, double) = nullptr;
  void (*rectangle)(void*, double, double, double, double) = nullptr;
  void (*arc)(void*, double, double, double, double, double) = nullptr;
  void (*stroke)(void*) = nullptr;
  void (*fill)(void*) = nullptr;
  void (*save)(void*) = nullptr;
  void (*restore)(void*) = nullptr;
  void (*translate)(void*, double, double) = nullptr;
  void (*rotate)(void*, double) = nullptr;
  void (*select_font_face)(void*, const char*, int slant, int weight) = nullptr;
  void (*set_font_size)(void*, double) = nullptr;
  void (*text_extents)(void*, const char*, CairoTextExtents*) = nullptr;
  void (*show_text)(void*, const char*) = nullptr;
  int (*status)(void*) = nullptr;
  int (*surface_write_to_png_stream)(void*, int (*)(void*, const unsigned char*, unsigned), void*) = nullptr;
  void (*destroy)(void*) = nullptr;
  void (*surface_destroy)(void*) = nullptr;

  static constexpr const char* file = "libcairo.so.2";
  void find(LoadedLibrary& library) {
    library.find(image_surface_create, "cairo_image_surface_create");
    library.find(create, "cairo_create");
    library.find(set_source_rgb, "cairo_set_source_rgb");
    library.find(set_line_width, "cairo_set_line_width");
    library.find(move_to, "cairo_move_to");
    library.find(line_to, "cairo_line_to");
    library.find(rectangle, "cairo_rectangle");
    library.find(arc, "cairo_arc");
    library.find(stroke, "cairo_stroke");
    library.find(fill, "cairo_fill");
    library.find(save, "cairo_save");
    library.find(restore, "cairo_restore");
    library.find(translate, "cairo_translate");
    library.find(rotate, "cairo_rotate");
    library.find(select_font_face, "cairo_select_font_face");
    library.find(set_font_size, "cairo_set_font_size");
    library.find(text_extents, "cairo_text_extents");
    library.find(show_text, "cairo_show_text");
    library.find(status, "cairo_status");
    library.find(surface_write_to_png_stream, "cairo_surface_write_to_png_stream");
    library.find(destroy, "cairo_destroy");
    library.find(surface_destroy, "cairo_surface_destroy");
  }
};

// "#rgb" or "#rrggbb"; black otherwise.
void set_color(const Cairo& cairo, void* context, const std::string& color) {
  double parts[3] = {0, 0, 0};
  const std::size_t digits = color.size() == 4 ? 1 : 2;
  if (color.size() == 4 || color.size() == 7)
    for (std::size_t i = 0; i < 3; ++i) {
      const double value = static_cast<double>(std::strtol(color.substr(1 + i * digits, digits).c_str(), nullptr, 16));
      parts[i] = value / (digits == 1 ? 15 : 255);
    }
  cairo.set_source_rgb(context, parts[0], parts[1], parts[2]);
}

// One command a line: its name, a colour, numbers; of a text its anchor (0, 0.5, 1 of its width) and its letters.
void draw(const Cairo& cairo, void* context, std::istringstream& line) {
  std::string name, color;
  double x = 0, y = 0, a = 0, b = 0;
  line >> name >> color >> x >> y;
  set_color(cairo, context, color);
  if (name == "polyline") {  // width first
    cairo.set_line_width(context, x);
    bool first = true;
    for (x = y; line >> y; line >> x, first = false) (first ? cairo.move_to : cairo.line_to)(context, x, y);
    cairo.stroke(context);
  } else if (name == "fill" || name == "frame") {
    line >> a >> b;
    cairo.rectangle(context, x, y, a, b);
    cairo.set_line_width(context, 1);
    (name == "fill" ? cairo.fill : cairo.stroke)(context);
  } else if (name == "dot") {
    line >> a;
    cairo.arc(context, x, y, a, 0, 2 * std::acos(-1.0));
    cairo.fill(context);
  } else if (name == "text") {
    double size = 0, anchor = 0, degrees = 0;
    std::string text;
    line >> size >> anchor >> degrees >> std::ws;
    std::getline(line, text);
    cairo.select_font_face(context, "sans-serif", 0, 0);
    cairo.set_font_size(context, size);
    CairoTextExtents extents = {};
    cairo.text_extents(context, text.c_str(), &extents);
    cairo.save(context);
    cairo.translate(context, x, y);
    cairo.rotate(context, degrees * std::acos(-1.0) / 180);
    cairo.move_to(context, -anchor * extents.x_advance, 0);
    cairo.show_text(context, text.c_str());
    cairo.restore(context);
  }
}

// picture_png(width, height, commands) → String, the bytes of the file
bool picture_png(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "picture_png", args, count, result);
  std::int64_t width = 0, height = 0;
  std::string_view commands;
  if (!call.arity(3) || !call.integer(0, width) || !call.integer(1, height) || !call.string(2, commands)) return false;
  constexpr std::int64_t most = 10'000;
  if (width < 1 || height < 1 || width > most || height > most)
    return ctx.argument_error("a picture has 1 to 10000 pixels in each direction");
  const Cairo* library = loaded<Cairo>();
  if (!library)
    return ctx.raise_error(
        "pictures need the library Cairo, libcairo.so.2 (Debian: libcairo2), which is not installed");
  const Cairo& cairo = *library;
  constexpr int rgb24 = 1;
  void* surface = cairo.image_surface_create(rgb24, static_cast<int>(width), static_cast<int>(height));
  void* context = cairo.create(surface);
  std::istringstream lines{std::string(commands)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    parts.imbue(std::locale::classic());
    draw(cairo, context, parts);
  }
  std::string bytes;
  const auto append = [](void* to, const unsigned char* data, unsigned length) {
    static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(data), length);
    return 0;
  };
  const bool drawn = cairo.status(context) == 0 && cairo.surface_write_to_png_stream(surface, append, &bytes) == 0;
  cairo.destroy(context);
  cairo.surface_destroy(surface);
  return drawn ? call.give(bytes) : ctx.raise_error("Cairo could not draw the picture");
}

const NativeInfo picture_natives[] = {{"picture_png", picture_png, effect_all, stdlib::returns_string}};

}  // namespace

void define_picture_natives(EngineState& engine) { stdlib::define_all(engine.runtime, picture_natives); }

}  // namespace slope::api::detail
