"""The paper's second experiment (6.2.2): gated recurrent units, many steps, against kernels called one by one."""
