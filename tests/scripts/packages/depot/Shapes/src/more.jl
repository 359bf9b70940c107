struct Square; side::Float64; end
