"""Attention of many queries: loops over blocks of queries or of sequences, and averages as accelerators compute them.

=====================  ================================================================================================
``blocks``             blocks of queries, each with all keys, or one block without a loop; blocks of sequences
``largest_products``   the largest product of each query (MaxSim)
``averages``           averages under a softmax, as GPUs and as TPUs compute them
=====================  ================================================================================================
"""
