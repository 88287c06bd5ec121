"""What is known of the member objects, and the operations that write them."""
