module Circle2
using Circle
end
