"""Where the numbers are computed: plans, forecasts, device selection and the engines."""
